"""The dashboard in a real browser: live updates and operation by keyboard."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import expect

from benchpool_scheduler.contract import (
    Attempt,
    Progress,
    State,
)
from benchpool_support.browser import Seen
from benchpool_support.full_stage import LATER, MINE, NOW, THEIRS, WAITS
from benchpool_support.keys import focused, hangs_out, tab_to
from benchpool_support.stage import StagedPool, job, reason
from benchpool_support.waiting import until_async

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.slow,
    pytest.mark.usefixtures("full_stage"),
]

Visit = Callable[..., Awaitable[Seen]]


# --------------------------------------------------------------------------- live


async def test_change_appears_without_reload_and_is_announced_once(
    visit: Visit, staged: StagedPool
) -> None:
    seen = await visit("susan")
    page = seen.page
    await expect(page.locator("#live")).to_have_text("live")
    await page.evaluate("window.sameDocument = true")
    await staged.becomes(WAITS.id, state=State.RUNNING, reason=None, started=NOW)
    row = page.locator(f"#running [data-key='{WAITS.id}']")
    await expect(row).to_contain_text("running")
    await expect(row).to_have_attribute("data-changed", "")
    await expect(page.locator("#speech")).to_have_text("ablation is running.")
    await expect(page.locator(f"#queue [data-key='{WAITS.id}']")).to_have_count(0)
    assert await page.evaluate("window.sameDocument")
    assert seen.faults == []


async def test_rows_keep_their_order_under_pointer(visit: Visit, staged: StagedPool) -> None:
    page = (await visit("susan")).page
    await expect(page.locator("#live")).to_have_text("live")
    rows = page.locator("#queue tbody tr")
    names = "rows => rows.map(row => row.dataset.name)"
    assert await rows.evaluate_all(names) == ["ablation", "later"]
    await rows.first.hover()
    await staged.becomes(LATER.id, priority=90, reason=reason("Next in line."))
    await expect(rows.nth(1)).to_contain_text("Next in line.")
    assert await rows.evaluate_all(names) == ["ablation", "later"]
    await staged.becomes(WAITS.id, state=State.CANCELLED)
    await expect(rows.first).to_have_attribute("data-gone", "")
    await expect(rows.first.get_by_role("button").first).to_be_disabled()
    await page.mouse.move(5, 5)
    await staged.becomes(LATER.id, reason=reason("Still next."))
    await expect(rows).to_have_count(1)
    await expect(rows.first).to_contain_text("Still next.")


async def test_typed_text_survives_update(visit: Visit, staged: StagedPool) -> None:
    page = (await visit("ada")).page
    await expect(page.locator("#live")).to_have_text("live")
    await page.locator("summary[aria-label^='Cancel bert']").click()
    field = page.get_by_label("Reason, for joe to read").locator("visible=true")
    await expect(field).to_be_focused()
    await field.fill("power cut at")
    await staged.becomes(THEIRS.id, progress=Progress(0.5, "half", NOW))
    await expect(page.locator(f"#running [data-key='{THEIRS.id}']")).to_contain_text("half")
    await expect(field).to_be_focused()
    await expect(field).to_have_value("power cut at")


async def test_page_shows_lost_connection_and_recovers(visit: Visit, staged: StagedPool) -> None:
    page = (await visit("susan")).page
    await expect(page.locator("#live")).to_have_text("live")
    refused = re.compile("api/v1/events")
    await page.context.set_offline(True)
    await page.route(refused, lambda route: route.abort())
    await page.evaluate(
        "dispatchEvent(new Event('pagehide')); dispatchEvent(new Event('pageshow'))"
    )
    await expect(page.locator("#live")).to_have_text("reconnecting")
    await staged.becomes(WAITS.id, reason=reason("Changed meanwhile."))
    await page.unroute(refused)
    await page.context.set_offline(False)
    await expect(page.locator("#live")).to_have_text("live", timeout=120_000)
    await expect(page.locator("#queue")).to_contain_text("Changed meanwhile.")


async def test_job_page_follows_log_until_scrolled_up(visit: Visit, staged: StagedPool) -> None:
    page = (await visit("susan", f"jobs/{MINE.id}")).page
    log = page.locator("#log")
    at_end = "box => box.scrollHeight - box.scrollTop - box.clientHeight < 2"
    await expect(page.locator("#logstate")).to_have_text("Following.")
    assert await log.evaluate(at_end)
    await staged.write_log(MINE.id, b"\x1b[32mloss\x1b[0m 0.5\n10%")
    await expect(log).to_contain_text("loss 0.5\n10%")
    await staged.becomes(MINE.id, progress=Progress(0.9, "epoch 27 of 30", NOW))
    await expect(page.get_by_text("epoch 27 of 30")).to_be_visible()
    await staged.write_log(MINE.id, b"\r99%")
    await expect(log).to_contain_text("loss 0.5\n99%")
    assert await log.evaluate(at_end)
    await log.evaluate("box => { box.scrollTop = 0; }")
    staged.log_ended = True
    await staged.write_log(MINE.id, b"\nbye\n")
    await expect(page.locator("#logstate")).to_have_text("The log of this attempt is complete.")
    assert await log.evaluate("box => box.scrollTop") == 0
    text = await log.evaluate("box => box.textContent")
    assert text.endswith("step 199\nloss 0.5\n99%\nbye\n")


async def test_job_page_switches_to_log_of_new_attempt(visit: Visit, staged: StagedPool) -> None:
    page = (await visit("susan", f"jobs/{WAITS.id}")).page
    await expect(page.get_by_text("No log yet. The job has not started.")).to_be_visible()
    await expect(page.locator("#live")).to_have_text("live")
    for attempt in (1, 2):
        staged.log_bytes[WAITS.id] = f"attempt {attempt} begins\n".encode()
        staged.starts[WAITS.id] = [
            Attempt(number, NOW, None, None, None, [], ["lab1"]) for number in range(1, attempt + 1)
        ]
        await staged.becomes(WAITS.id, state=State.RUNNING, attempt=attempt)
        await expect(page.locator("#log")).to_have_text(f"attempt {attempt} begins\n")
        await expect(page.locator("#logstate")).to_have_text("Following.")
        await staged.write_log(WAITS.id, b"goes on\n")
        await expect(page.locator("#log")).to_contain_text("goes on")


# --------------------------------------------------------------------------- actions


async def test_job_is_paused_and_resumed_by_keyboard(visit: Visit, staged: StagedPool) -> None:
    page = (await visit("susan")).page
    await tab_to(page, "Pause resnet")
    await page.keyboard.press("Enter")
    await expect(page.locator("#flash")).to_contain_text("resnet is paused until you resume it.")
    await expect(page.locator("#speech")).to_contain_text("resnet is paused")
    await until_async(lambda: focused(page), holds=lambda on: on == "Resume resnet")
    await page.wait_for_timeout(800)  # a button that has just appeared ignores presses
    await page.keyboard.press("Enter")
    await expect(page.locator("#flash")).to_contain_text("resnet waits in the queue again.")
    assert [(verb, who) for verb, who, _, _ in staged.asked] == [
        ("pause", "susan"),
        ("resume", "susan"),
    ]


async def test_administrator_cancels_with_reason_by_keyboard(
    visit: Visit, staged: StagedPool
) -> None:
    page = (await visit("ada")).page
    await tab_to(page, "Cancel bert …")
    await page.keyboard.press("Enter")
    assert await hangs_out(page, ".sheet >> visible=true") == 0
    loss = page.get_by_text(re.compile(r"It has run [\w ]+ on 1 GPU;")).locator("visible=true")
    await expect(loss).to_have_count(1)
    await page.keyboard.press("Escape")
    await until_async(lambda: focused(page), holds=lambda on: on == "Cancel bert …")
    await page.keyboard.press("Enter")
    await expect(page.locator("input[name=reason]:focus")).to_have_count(1)
    await page.keyboard.type("power cut")
    await page.keyboard.press("Enter")
    await expect(page.locator("#flash")).to_contain_text("bert is cancelled.")
    assert staged.asked == [("cancel", "ada", THEIRS.id, "power cut")]


async def test_priority_change_by_keyboard_survives_update(
    visit: Visit, staged: StagedPool
) -> None:
    page = (await visit("susan", f"jobs/{WAITS.id}")).page
    await tab_to(page, f"Change {WAITS.name} …")
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Priority")).to_be_focused()
    await page.keyboard.press("ControlOrMeta+a")
    await page.keyboard.type("80")
    assert await hangs_out(page, ".sheet >> visible=true") == 0
    await staged.becomes(WAITS.id, reason=reason("Changed meanwhile."))
    await expect(page.get_by_text("Changed meanwhile.")).to_be_visible()
    await expect(page.get_by_label("Priority")).to_have_value("80")
    await page.keyboard.press("Enter")
    await expect(page.locator("#flash")).to_contain_text(f"{WAITS.name} has priority 80")
    assert await focused(page) == f"Change {WAITS.name} …"
    wanted = "{'priority': 80, 'workers': 1, 'gpus': 2, 'project': 'susan', 'gpu_models': ()}"
    assert staged.asked == [("change", "susan", WAITS.id, wanted)]


async def test_reason_box_is_as_wide_as_page(visit: Visit, staged: StagedPool) -> None:
    page = (await visit("susan", f"jobs/{WAITS.id}")).page
    box = await page.locator(".notice.why").bounding_box()
    log = await page.locator("section[data-key=log]").bounding_box()
    assert box is not None
    assert log is not None
    assert box["width"] == log["width"] > 800


async def test_refusal_is_shown_and_announced(visit: Visit, staged: StagedPool) -> None:
    page = (await visit("susan")).page
    button = page.get_by_role("button", name="Pause resnet")
    await expect(button).to_be_visible()
    staged.held_jobs[MINE.id] = job("resnet", State.SUCCEEDED, ended=NOW)
    await button.click()
    message = "resnet is succeeded already: there is nothing to pause."
    await expect(page.locator("#flash")).to_have_text(message)
    await expect(page.locator("#speech")).to_have_text(message)


async def test_dashboard_works_without_scripts(visit: Visit, staged: StagedPool) -> None:
    page = (await visit("susan", java_script_enabled=False)).page
    await expect(page.get_by_role("link", name="Reload")).to_be_visible()
    await page.get_by_role("button", name="Pause resnet").click()
    await expect(page.get_by_text("resnet is paused until you resume it.")).to_be_visible()
    await page.get_by_role("link", name="resnet").first.click()
    await expect(page.locator("#log")).to_contain_text("step 199")
    await expect(page.get_by_role("heading", name="resnet")).to_be_visible()
