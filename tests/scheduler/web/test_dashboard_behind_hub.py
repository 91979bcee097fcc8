"""The dashboard as a service of a real JupyterHub, behind its login."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from benchpool_support import direct
from benchpool_support.browser import PATIENCE_MS
from benchpool_support.people import screen
from benchpool_support.workstation import RunningWorkstation, start

pytestmark = pytest.mark.e2e

CONFIGURATION = """
version: 1
build: {users: {susan: 1}}
projects:
  - {name: susan, quota: 2, members: [susan]}
policy: {grace_s: 1}
"""
JOB = {"entry": {"kind": "command", "argv": ["sleep", "1000"]}, "name": "nap", "gpus": 3}

SEEN = re.compile("just now|ago")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorkstation]:
    folder = tmp_path_factory.mktemp("hub")
    config = folder / "benchpool.yaml"
    config.write_text(CONFIGURATION)
    with start(folder / "state", gpus=4, config=config) as up:
        up.add_user("susan")
        yield up


@pytest.fixture
def window() -> Iterator[BrowserContext]:
    with screen() as browser:
        context = browser.new_context()
        context.set_default_timeout(30_000)
        yield context


def log_in(page: Page, up: RunningWorkstation) -> None:
    page.get_by_label(re.compile("username", re.IGNORECASE)).fill("susan")
    page.get_by_label(re.compile("password", re.IGNORECASE)).fill(up.shared_password)
    page.get_by_role("button", name=re.compile("sign in", re.IGNORECASE)).click()


def open_again_until(page: Page, what: Locator) -> None:
    """Reload a page that has no live updates until an element is visible."""
    last = time.monotonic() + PATIENCE_MS / 1000
    while not what.is_visible():
        assert time.monotonic() < last, page.locator("main").inner_text()
        page.wait_for_timeout(500)
        page.reload()


def test_user_logs_in_and_pauses_job_on_page(
    up: RunningWorkstation, window: BrowserContext
) -> None:
    page = window.new_page()
    stopped: list[str] = []
    page.on(
        "console",
        lambda line: stopped.append(line.text) if "Content Security" in line.text else None,
    )
    page.goto(up.ready["url"] + "services/benchpool/")
    log_in(page, up)
    expect(page).to_have_title("GPU pool · benchpool")
    expect(page.locator("#live")).to_have_text("live")
    expect(page.get_by_text("Simulated GPUs.")).to_be_visible()

    as_susan = up.scheduler_as(up.token_of("susan"))
    job = as_susan.post("/jobs", json=JOB).raise_for_status().json()
    row = page.locator(f"[data-key='{job['id']}']")
    expect(row.locator(".state-running")).to_be_visible()
    expect(row).to_contain_text("over quota")
    page.goto(job["url"] if job["url"].startswith("http") else up.ready["url"] + job["url"][1:])
    expect(page.get_by_role("heading", name="nap")).to_be_visible()
    page.get_by_role("link", name="Pool and queue").click()
    page.get_by_role("button", name="Pause nap").click()
    expect(page.locator("#paused")).to_contain_text("paused")
    page.locator("#paused").get_by_role("button", name="Resume nap").click()
    expect(row.locator(".state-running")).to_be_visible()
    assert stopped == []

    cookies = {one["name"]: one["value"] for one in window.cookies(page.url)}
    with direct.Client(cookies=cookies) as forger:
        forged: list[dict[str, str]] = [{}, {"_xsrf": "2|forged"}]
        for token in forged:
            answer = forger.post(
                f"{up.ready['url']}services/benchpool/jobs/{job['id']}/cancel", data=token
            )
            assert answer.status_code == 403
    assert as_susan.get(f"/jobs/{job['id']}").json()["job"]["state"] == "running"


def test_dashboard_is_in_services_menu_of_hub(
    up: RunningWorkstation, window: BrowserContext
) -> None:
    page = window.new_page()
    page.goto(up.ready["url"] + "hub/home")
    log_in(page, up)
    page.get_by_role("button", name="Services").click()
    page.get_by_role("link", name=re.compile("benchpool", re.IGNORECASE)).click()
    expect(page).to_have_title("GPU pool · benchpool")
    page.get_by_role("link", name="Hub home").click()
    expect(page).to_have_url(up.ready["url"] + "hub/home")


def test_administrator_sets_and_reverts_quota_on_page(
    up: RunningWorkstation, window: BrowserContext
) -> None:
    page = window.new_page()
    page.goto(up.ready["login_url"])
    page.goto(up.ready["url"] + "services/benchpool/people")
    seen = page.get_by_role("row").filter(has_text="administrator").get_by_text(SEEN)
    open_again_until(page, seen)
    page.get_by_role("link", name="Quotas", exact=True).click()
    page.get_by_label("Limit of susan").fill("3")
    expect(page.locator("#plan")).to_contain_text("limit not set → 3")
    page.get_by_label("Reason, recorded with the change").fill("so many is enough")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("In force as version 2.")).to_be_visible()
    with direct.Client(headers={"Authorization": f"token {up.ready['admin_token']}"}) as admin:
        log = admin.get(up.ready["scheduler_api"] + "/config/log").json()
    assert [(one["way"], one["reason"]) for one in log] == [
        ("set", "so many is enough"),
        ("start", ""),
    ]
    assert log[0]["author"]
    versions = page.locator("#versions")
    versions.get_by_label("Revert to version 1 …").click()
    versions.get_by_label("Reason, recorded with the change").fill("it was not")
    versions.get_by_role("button", name="Revert now").click()
    expect(page.get_by_text("In force as version 3.")).to_be_visible()
    expect(page.get_by_label("Limit of susan")).to_have_value("")
