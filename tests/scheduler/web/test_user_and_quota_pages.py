"""Users and quotas are changed on pages that preview the changes beside the form."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.configuration import ConfigurationEdit, Setting
from benchpool_scheduler.hub import HubUser, StaticDirectory
from benchpool_scheduler.service import Pool
from benchpool_support.browser import opened_by
from benchpool_support.people import SIZES
from benchpool_support.pools import (
    ADMIN,
    JOE,
    SUSAN,
    make_pool,
    opened,
    reached,
    sleeper,
    story,
)
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.stage import application, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

CALLERS = {"susan": SUSAN, "joe": JOE, "ada": ADMIN}
TEXT = """\
# who has what in our room
version: 1
build:
  users: {susan: 1, joe: 1}
projects:
  - {name: research, quota: 6}
  # susan's thesis
  - {name: susan, parent: research, quota: 4, members: [susan], leads: [susan]}
  - {name: joe, parent: research, quota: 2, members: [joe], priority: 1}
  - {name: guests, members: ["*"], personal_projects: {limit: 2}}
policy: {grace_s: 20, oversubscribe: true}
"""
SEEN_S = 1_700_000_000.0


@pytest_asyncio.fixture(loop_scope="module")
async def file(tmp_path: Path) -> Path:
    made = tmp_path / "benchpool.yaml"
    made.write_text(TEXT)
    return made


@pytest_asyncio.fixture(loop_scope="module")
async def pool(tmp_path: Path, file: Path) -> AsyncIterator[Pool]:
    people = (
        HubUser("susan", groups={"staff": None}, last_seen=SEEN_S),
        HubUser("joe", last_seen=SEEN_S),
        HubUser("ada", admin=True),
    )
    made = make_pool(
        tmp_path,
        configuration=story(TEXT),
        runtime=ScriptedRuntime(devices(8)),
        directory=StaticDirectory(people),
        configuration_file=file,
    )
    async with opened(made) as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def address(pool: Pool) -> AsyncIterator[str]:
    with served(lambda: application(pool, CALLERS)) as url:
        yield url


async def shot(page: Page, name: str) -> None:
    """Take light and dark screenshots, wide and phone-sized, if a folder for them is configured."""
    folder = os.environ.get("BENCHPOOL_SCREENSHOTS")
    if not folder:
        return
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        for width, height in SIZES:
            await page.set_viewport_size({"width": width, "height": height})
            path = Path(folder) / f"{name}-{scheme}-{width}.png"
            await page.screenshot(path=path, full_page=True)
    await page.emulate_media(color_scheme="light")
    await page.set_viewport_size({"width": 1440, "height": 900})


async def test_quota_change_previews_starts_and_preemptions(
    pool: Pool, address: str, browser: Browser, file: Path
) -> None:
    running = await pool.jobs.submit(SUSAN, sleeper(gpus=4, name="thesis"))
    await reached(pool, running.id, State.RUNNING)
    other = await pool.jobs.submit(JOE, sleeper(gpus=2, name="first"))
    await reached(pool, other.id, State.RUNNING)
    waits = await pool.jobs.submit(JOE, sleeper(gpus=2, name="second"))
    page = await opened_by(browser, address, "quotas")
    plan = page.locator("#plan")
    await expect(plan).to_contain_text("Nothing to change yet")
    await expect(page.get_by_role("button", name="Save")).to_be_disabled()
    await page.get_by_label("Guaranteed GPUs of joe").fill("4")
    await page.get_by_label("Guaranteed GPUs of susan").fill("2")
    await expect(plan).to_contain_text("joe starts 1 job now, with 2 GPUs")
    await expect(plan).to_contain_text("susan loses 4 GPUs")
    await expect(plan).to_contain_text("Project joe (joe): guaranteed quota 2 → 4.")
    await expect(plan).to_contain_text("projects.joe.quota=4")
    await shot(page, "quotas-whatif")
    assert file.read_text() == TEXT
    await page.get_by_label("Reason, recorded with the change").fill("the paper of joe")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("In force as version 2.")).to_be_visible()
    assert "# susan's thesis" in file.read_text()
    assert "quota: 4, members: [joe]" in file.read_text()
    newest = (await pool.configuration.versions.log(ADMIN, 1))[0]
    assert (newest.author, newest.reason) == (ADMIN.name, "the paper of joe")
    await reached(pool, running.id, State.PAUSING)
    assert waits.state is State.QUEUED
    versions = page.locator("#versions")
    await expect(versions).to_contain_text("the paper of joe")
    await versions.get_by_label("Revert to version 1 …").click()
    await versions.get_by_label("Reason, recorded with the change").fill("too early")
    await shot(page, "quotas-versions")
    await versions.get_by_role("button", name="Revert now").click()
    await expect(page.get_by_text("In force as version 3.")).to_be_visible()
    assert file.read_text() == TEXT


async def test_gpu_hour_budget_is_set_and_shown_beside_quotas(
    pool: Pool, address: str, browser: Browser, file: Path
) -> None:
    page = await opened_by(browser, address, "quotas")
    await page.get_by_label("Hard budget of GPU-hours of project susan").fill("6000")
    await page.get_by_label("Soft budget of GPU-hours of all other users").fill("300")
    plan = page.locator("#plan")
    await expect(plan).to_contain_text("Project susan (susan): monthly budget none → hard 6000")
    await expect(plan).to_contain_text("projects.susan.gpu_hours.hard=6000 gpu_hours.soft=300")
    await page.get_by_label("Reason, recorded with the change").fill("the grant")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("In force as version 2.")).to_be_visible()
    await expect(page.locator("#gpu-hours")).to_contain_text("0.0 of 6000 GPU-hours this month")
    await shot(page, "quotas-hours")
    assert "gpu_hours:" in file.read_text()
    page = await opened_by(browser, address, "")
    await expect(page.locator("#projects")).to_contain_text("0.0 of 6000 GPU-hours this month")
    await expect(page.locator("#projects-h")).to_contain_text("you used 0.0 of 300 (soft)")


async def test_pasted_users_get_bench_and_project(
    pool: Pool, address: str, browser: Browser, file: Path
) -> None:
    page = await opened_by(browser, address, "people")
    susan = page.get_by_role("row").filter(has_text="susan")
    await expect(susan).to_contain_text("user susan")
    await expect(susan).to_contain_text("staff")
    await expect(susan.locator("time")).to_have_attribute("datetime", re.compile("^2023-11-14T"))
    await page.get_by_role("textbox", name="Names").fill("zoe, ann.lee\nzoe")
    await page.get_by_label("Bench GPUs of each").fill("1")
    await page.locator("select[name=project]").select_option("a new project each")
    await page.get_by_label("GPUs of each new project").fill("1")
    plan = page.locator("#plan")
    await expect(plan).to_contain_text("Project zoe (zoe) is added, guaranteed quota 1.")
    await expect(plan).to_contain_text("Build quota of user ann.lee: not set → 1 GPU.")
    await shot(page, "people-add")
    await page.get_by_label("Reason, recorded with the change").fill("new this term")
    await page.get_by_role("button", name="Save").click()
    row = page.get_by_role("row").filter(has_text="ann.lee")
    await expect(row).to_contain_text("not in the Hub yet")
    await expect(row).to_contain_text("user ann.lee")
    assert pool.observed.now.configuration.project("zoe").members == ("zoe",)  # type: ignore[union-attr]
    await page.get_by_label("Bench GPUs of zoe").fill("90")
    await expect(plan).to_contain_text("build.users.zoe is 90 and the pool has 8 GPUs")
    await expect(page.get_by_role("button", name="Save")).to_be_disabled()
    await page.get_by_label("Bench GPUs of zoe").fill("")
    await expect(plan).to_contain_text("Build quota of user zoe: 1 GPU → not set.")
    await expect(page.get_by_role("button", name="Save")).to_be_enabled()


async def test_personal_projects_are_changed_by_their_template(
    pool: Pool, address: str, browser: Browser, file: Path
) -> None:
    page = await opened_by(browser, address, "quotas")
    assert pool.observed.now.configuration.project("ada") is not None
    await expect(page.get_by_label("Guaranteed GPUs of ada")).to_have_count(0)
    await page.get_by_label("Limit of each personal project of guests").fill("3")
    await expect(page.locator("#plan")).to_contain_text("a personal project for each member")
    await page.get_by_label("Hard budget of GPU-hours of each personal project of guests").fill("9")
    await expect(page.locator("#plan")).to_contain_text("monthly hard 9 GPU-hours")
    await page.get_by_label("Reason, recorded with the change").fill("more guests")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("In force as version 2.")).to_be_visible()
    assert "personal_projects: {limit: 3, gpu_hours: {hard: 9}}" in file.read_text()
    assert pool.observed.now.configuration.project("ada").project.limit == 3  # type: ignore[union-attr]


async def test_markup_in_names_is_escaped(pool: Pool, address: str, browser: Browser) -> None:
    name, person = """<b id=hit>"o'r">""", '<i id=hit onclick="x">'
    made = [Setting(f"projects.{name}.name", name), Setting(f"build.users.{person}", 0)]
    await pool.configuration.set(ADMIN, ConfigurationEdit(made, "<u id=hit>why</u>"))
    for path, label in (
        ("quotas", f"Guaranteed GPUs of {name}"),
        ("people", f"Bench GPUs of {person}"),
    ):
        page = await opened_by(browser, address, path)
        await page.get_by_label(label).fill("1")
        await expect(page.locator("#plan")).to_contain_text("1 value to change")
        await expect(page.locator("#plan")).to_contain_text("0 → 1")
        await expect(page.locator("#hit")).to_have_count(0)


async def test_rejected_form_keeps_typed_values(pool: Pool, address: str, browser: Browser) -> None:
    page = await opened_by(browser, address, "quotas", java_script_enabled=False)  # type: ignore[arg-type]
    await page.get_by_label("Limit of joe").fill("many")
    await page.get_by_label("Reason, recorded with the change").fill("why not")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("#plan")).to_contain_text("must be a whole number, not 'many'")
    await expect(page.get_by_label("Limit of joe")).to_have_value("many")
    await expect(page.get_by_label("Reason, recorded")).to_have_value("why not")
    assert len(await pool.configuration.versions.log(ADMIN, 10)) == 1


async def test_very_large_quota_form_can_be_edited(
    pool: Pool, address: str, browser: Browser
) -> None:
    many = "".join(f"  - {{name: p{number}, members: [u{number}]}}\n" for number in range(200))
    await pool.configuration.apply(ADMIN, TEXT.replace("policy:", f"{many}policy:"))
    page = await opened_by(browser, address, "quotas")
    assert await page.locator("input[name^='set:']").count() > 1000
    await page.get_by_label("Guaranteed GPUs of p77", exact=True).fill("1")
    await expect(page.locator("#plan")).to_contain_text("Project p77 (u77): guaranteed quota 0 → 1")
    await page.get_by_label("Limit of p78", exact=True).fill("many")
    await expect(page.locator("#plan")).to_contain_text("must be a whole number, not 'many'")
    await page.get_by_label("Limit of p78", exact=True).fill("")
    await page.locator("#settings").get_by_label("Reason, recorded").fill("one more")
    await expect(page.get_by_role("button", name="Save")).to_be_enabled()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("In force as version 3.")).to_be_visible()


async def test_outdated_form_does_not_overwrite_newer_version(
    pool: Pool, address: str, browser: Browser
) -> None:
    page = await opened_by(browser, address, "quotas")
    other = await opened_by(browser, address, "quotas")
    for one, limit in ((page, "5"), (other, "3")):
        await one.get_by_label("Limit of joe").fill(limit)
        await expect(one.locator("#plan")).to_contain_text(f"limit not set → {limit}")
    for one in (page, other):
        await one.get_by_label("Reason, recorded with the change").fill("mine")
        await one.get_by_role("button", name="Save").click()
    await expect(other.locator("#plan")).to_contain_text("based on version 1, version 2 is")
    assert pool.observed.now.configuration.project("joe").project.limit == 5  # type: ignore[union-attr]


@pytest.mark.parametrize("path", ["people", "quotas"])
async def test_quota_pages_are_hidden_from_non_administrators(
    address: str, browser: Browser, path: str
) -> None:
    page = await opened_by(browser, address, path, "susan")
    await expect(page.get_by_role("heading", name="Not allowed")).to_be_visible()
    home = await opened_by(browser, address, "", "susan")
    await expect(home.get_by_role("link", name="Quotas")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["people", "quotas"])
async def test_quota_pages_fit_phone_width(
    address: str, browser: Browser, path: str, scheme: str
) -> None:
    page = await opened_by(browser, address, path, width=390, color_scheme=scheme)
    await expect(page.locator("#plan")).to_contain_text("Nothing to change yet")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    if scheme == "light":
        await shot(page, path)


async def test_change_panel_covers_no_field_on_phone(address: str, browser: Browser) -> None:
    page = await opened_by(browser, address, "quotas", width=390, reduced_motion="reduce")
    side, quota = page.locator(".side"), page.get_by_label("Guaranteed GPUs of joe")
    assert await side.evaluate("one => getComputedStyle(one).position") == "static"
    await quota.fill("3")
    await expect(page.get_by_role("button", name="Save")).to_be_visible()
    assert await side.evaluate("one => getComputedStyle(one).position") == "sticky"
    # A field focused by keyboard is visible above the panel.
    leads = page.get_by_label("Leads of joe")
    await leads.focus()
    field, panel = await leads.bounding_box(), await side.bounding_box()
    assert field is not None
    assert panel is not None
    assert field["y"] + field["height"] <= panel["y"]
