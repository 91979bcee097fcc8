"""A build quota typed by an administrator into JupyterHub's own page for groups (R2)."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from benchpool_scheduler.workstation.options import account
from benchpool_support.browser import chromium
from benchpool_support.waiting import until_async
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


async def type_property(page: Page, up: RunningWorkstation, group: str, value: str) -> None:
    """Set the property ``benchpool`` of a group, as described in the docs."""
    await page.goto(f"{up.ready['url']}hub/admin#/groups")
    await page.reload()
    await page.get_by_role("link", name=group, exact=True).click()
    await expect(page.get_by_role("heading", name=f"Editing Group {group}")).to_be_visible()
    new_key, new_value = (
        page.locator(".properties-table tr:last-child input").nth(i) for i in (0, 1)
    )
    await new_key.fill("benchpool")
    await new_value.fill(value)
    await page.get_by_test_id("add-item").click()
    async with page.expect_response(lambda answer: "/properties" in answer.url) as kept:
        await page.get_by_test_id("submit").click()
    assert (await kept.value).ok


async def problem(up: RunningWorkstation, word: str) -> str:
    """Wait until the pool's health shows a problem with this word; return all problems."""
    return await until_async(
        lambda: " ".join(up.scheduler.get("/status").json()["health"]["problems"]),
        f"the pool tells of {word}",
        holds=lambda problems: word in problems,
    )


async def test_typed_group_quota_applies_and_typo_is_reported(up: RunningWorkstation) -> None:
    up.add_user("gwen")
    with up.group("opticians", "gwen"), up.group("typists"):
        await type_both_and_look(up)


async def type_both_and_look(up: RunningWorkstation) -> None:
    async with chromium() as browser:
        page = await browser.new_page()
        await page.goto(f"{up.ready['url']}hub/login")
        await page.fill("#username_input", account())
        await page.fill("#password_input", (up.state / "admin-password").read_text().strip())
        await page.click("#login_submit")
        await type_property(page, up, "opticians", '{"build_quota": 2}')
        await type_property(page, up, "typists", "build_quota = 2")

        kept = up.hub.get("/groups/opticians").json()["properties"]
        assert kept == {"benchpool": '{"build_quota": 2}'}
        problems = await problem(up, "group typists")
        assert "The property benchpool of the group typists cannot be read" in problems
        assert "opticians" not in problems

        quota = up.scheduler.get("/quota", params={"user": "gwen"}).json()
        assert (quota["build"]["quota"], quota["build"]["rule"]) == (
            2,
            "property of group opticians",
        )
        refused = up.ask_server("gwen", gpus=3)
        assert "build quota of gwen: 2 (property of group opticians)" in refused.text
        await page.goto(f"{up.ready['url']}services/benchpool/")
        shown = await page.locator("body").inner_text()
        assert "The property benchpool of the group typists cannot be read" in shown
