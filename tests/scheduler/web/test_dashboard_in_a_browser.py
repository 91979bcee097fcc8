"""The dashboard in a real browser: live, by keyboard, on a phone, in the dark, for everybody."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from benchpool_scheduler import phrases
from benchpool_scheduler.contract import (
    Attempt,
    EstimatedStart,
    GpuState,
    InLine,
    Lease,
    LinePlace,
    Preemption,
    Progress,
    ProjectQuota,
    State,
)
from benchpool_support.browser import Seen
from benchpool_support.stage import StagedPool, gpu, job, reason

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

Visit = Callable[..., Awaitable[Seen]]

NOW = datetime.now(UTC)
MINE = job(
    "resnet",
    State.RUNNING,
    gpus=4,
    over_quota=True,
    attempt=2,
    progress=Progress(0.63, "epoch 19 of 30", NOW),
    preemptions=[Preemption(NOW, "joe: bert", "R15", 1460.0, NOW)],
)
WAITS = job(
    "ablation",
    gpus=2,
    reason=reason("Waits for 2 GPUs: 1 of 9 is free.", "It starts when job resnet ends."),
)
LATER = job("later", submitted=NOW)
THEIRS = job("bert", State.RUNNING, user="joe", project="joe")
PAUSED = job("nightly", State.PAUSED)
FAILED = job("typo", State.FAILED, ended=NOW, exit_code=1)


@pytest.fixture(autouse=True)
def full_stage(staged: StagedPool) -> None:
    """Every state of jobs and GPUs at once."""
    staged.add(MINE, WAITS, LATER, THEIRS, PAUSED, FAILED)
    staged.text = "6 of 7 GPUs work; 2 jobs wait"
    staged.gpus = [gpu(index, state) for index, state in enumerate(GpuState)]
    staged.gpus[0] = gpu(0, GpuState.TRAIN_OVER_QUOTA, user="susan", job=MINE.id)
    staged.gpus[2] = gpu(2, GpuState.BUILD_HELD, user="joe", server="paper")
    staged.held_leases = [Lease("a" * 26, "joe", "paper", "s", [staged.gpus[2].uuid], NOW)]
    staged.build_quotas = {"joe": 2, "susan": 1}
    why = reason("2 GPUs are not free: 0 on one machine now, 2 GPUs held by 1 other server.")
    soon = EstimatedStart(NOW, NOW + timedelta(minutes=12), None)
    since = NOW - timedelta(minutes=4)
    staged.waiting = [
        InLine("susan", "", 1, [], LinePlace("b" * 26, 1, 2, since, why, soon)),
        InLine("joe", "large", 2, ["H100"], LinePlace("c" * 26, 2, 2, NOW, why, None)),
    ]
    staged.projects = [
        ProjectQuota("susan", 2, 3, 4, None, 2),
        ProjectQuota("joe", 2, 2, 1, 4, 0),
    ]
    staged.starts[MINE.id] = [
        Attempt(1, NOW - timedelta(hours=1), NOW, 143, "notice", [], ["lab1"]),
        Attempt(2, NOW, None, None, None, [staged.gpus[0].uuid], ["lab1"]),
    ]
    staged.starts[THEIRS.id] = [
        Attempt(1, NOW - timedelta(minutes=12), None, None, None, [], ["lab1"])
    ]
    staged.log_bytes[MINE.id] = b"".join(b"step %d\n" % number for number in range(200))


async def focused(page: Page) -> str:
    name = await page.evaluate(
        "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"
    )
    return str(name).strip()


async def tab_to(page: Page, name: str) -> None:
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await focused(page) == name:
            return
    raise AssertionError(f"no way by keyboard to {name}")


async def hangs_out(page: Page, chosen: str) -> float:
    """Return how far something reaches beyond the window, in pixels."""
    box, size = await page.locator(chosen).bounding_box(), page.viewport_size
    assert box is not None
    assert size is not None
    return max(0.0, -box["x"], box["x"] + box["width"] - size["width"])


# --------------------------------------------------------------------------- live


async def test_a_change_appears_without_reloading_and_is_marked_and_spoken_once(
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


async def test_rows_keep_their_order_under_the_pointer(visit: Visit, staged: StagedPool) -> None:
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


async def test_what_the_reader_types_survives_an_update(visit: Visit, staged: StagedPool) -> None:
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


async def test_the_page_says_when_it_is_not_live_and_comes_back(
    visit: Visit, staged: StagedPool
) -> None:
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
    await expect(page.locator("#live")).to_have_text("live", timeout=10_000)
    await expect(page.locator("#queue")).to_contain_text("Changed meanwhile.")


async def test_a_job_page_follows_its_log_until_the_reader_scrolls_up(
    visit: Visit, staged: StagedPool
) -> None:
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
    await expect(page.locator("#logstate")).to_have_text("The log is complete.")
    assert await log.evaluate("box => box.scrollTop") == 0
    text = await log.evaluate("box => box.textContent")
    assert text.endswith("step 199\nloss 0.5\n99%\nbye\n")


async def test_a_job_page_turns_to_the_log_of_a_new_attempt(
    visit: Visit, staged: StagedPool
) -> None:
    page = (await visit("susan", f"jobs/{WAITS.id}")).page
    await expect(page.get_by_text("No log yet: the job has not started.")).to_be_visible()
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


async def test_a_job_is_paused_and_resumed_by_keyboard_alone(
    visit: Visit, staged: StagedPool
) -> None:
    page = (await visit("susan")).page
    await tab_to(page, "Pause resnet")
    await page.keyboard.press("Enter")
    await expect(page.locator("#flash")).to_contain_text("resnet is paused until you resume it.")
    await expect(page.locator("#speech")).to_contain_text("resnet is paused")
    assert await focused(page) == "Resume resnet"
    await page.wait_for_timeout(800)  # what has just appeared cannot be pressed by accident
    await page.keyboard.press("Enter")
    await expect(page.locator("#flash")).to_contain_text("resnet waits in the queue again.")
    assert [(verb, who) for verb, who, _, _ in staged.asked] == [
        ("pause", "susan"),
        ("resume", "susan"),
    ]


async def test_an_administrator_cancels_with_a_reason_by_keyboard(
    visit: Visit, staged: StagedPool
) -> None:
    page = (await visit("ada")).page
    await tab_to(page, "Cancel bert …")
    await page.keyboard.press("Enter")
    assert await hangs_out(page, ".sheet >> visible=true") == 0
    loss = page.get_by_text(re.compile(r"It has run \d+ min on 1 GPU;")).locator("visible=true")
    await expect(loss).to_have_count(1)
    await page.keyboard.press("Escape")
    assert await focused(page) == "Cancel bert …"
    await page.keyboard.press("Enter")
    await expect(page.locator("input[name=reason]:focus")).to_have_count(1)
    await page.keyboard.type("power cut")
    await page.keyboard.press("Enter")
    await expect(page.locator("#flash")).to_contain_text("bert is cancelled.")
    assert staged.asked == [("cancel", "ada", THEIRS.id, "power cut")]


async def test_a_priority_is_changed_by_keyboard_and_not_lost_by_an_update(
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
    assert staged.asked == [("change", "susan", WAITS.id, "{'priority': 80, 'workers': 1}")]


async def test_a_refusal_is_said_where_the_reader_is(visit: Visit, staged: StagedPool) -> None:
    page = (await visit("susan")).page
    button = page.get_by_role("button", name="Pause resnet")
    await expect(button).to_be_visible()
    staged.held_jobs[MINE.id] = job("resnet", State.SUCCEEDED, ended=NOW)
    await button.click()
    message = "resnet is succeeded already: there is nothing to pause."
    await expect(page.locator("#flash")).to_have_text(message)
    await expect(page.locator("#speech")).to_have_text(message)


async def test_everything_can_be_read_and_done_without_scripts(
    visit: Visit, staged: StagedPool
) -> None:
    page = (await visit("susan", java_script_enabled=False)).page
    await expect(page.get_by_role("link", name="Reload")).to_be_visible()
    await page.get_by_role("button", name="Pause resnet").click()
    await expect(page.get_by_text("resnet is paused until you resume it.")).to_be_visible()
    await page.get_by_role("link", name="resnet").first.click()
    await expect(page.locator("#log")).to_contain_text("step 199")
    await expect(page.get_by_role("heading", name="resnet")).to_be_visible()


# --------------------------------------------------------------------------- for everybody


PAGES = ["", f"jobs/{MINE.id}", f"jobs/{WAITS.id}", "jobs/nonesuch"]


@pytest.mark.parametrize("width", [375, 320, 640])
async def test_no_page_scrolls_sideways_on_a_phone_or_at_twice_the_size(
    visit: Visit, width: int
) -> None:
    for path in PAGES:
        page = (await visit("ada", path, width=width)).page
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, path
        for sheet in await page.locator("summary.button").all():
            await sheet.click()
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
        await page.context.close()


CONTRAST = Path(__file__).with_name("contrast.js").read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_all_text_stands_out_from_its_ground_in_light_and_dark(
    visit: Visit, scheme: str
) -> None:
    for path in PAGES:
        page = (await visit("ada", path, color_scheme=scheme)).page
        for sheet in await page.locator("summary").all():
            await sheet.evaluate("summary => { summary.parentElement.open = true; }")
        weak, ground = await page.evaluate(CONTRAST)
        assert weak == [], path
        assert (ground < 0.1) == (scheme == "dark")
        await page.context.close()


async def test_a_screen_reader_finds_regions_tables_and_named_squares(visit: Visit) -> None:
    page = (await visit("ada")).page
    for name in ("GPU pool", "Queue", "Running", "Paused", "Benches", "Projects"):
        await expect(page.get_by_role("region", name=re.compile(f"^{name}"))).to_have_count(1)
    square = page.get_by_role("link", name="GPU 0 · A100 · train, over quota · susan: resnet")
    await expect(square).to_have_attribute("href", re.compile(MINE.id))
    queue = page.get_by_role("table", name=re.compile("^Queue"))
    snapshot = await queue.aria_snapshot()
    assert 'columnheader "State and reason"' in snapshot
    assert "queued Waits for 2 GPUs: 1 of 9 is free." in snapshot
    bar = page.get_by_role("img", name="4 GPUs allocated, 2 of them over quota")
    await expect(bar).to_have_count(1)
    unnamed = await page.evaluate(
        """() => [...document.querySelectorAll('a, button, summary, input:not([type=hidden])')]
            .filter(one => !(one.getAttribute('aria-label') || one.textContent.trim()
                             || one.labels?.length)).length"""
    )
    assert unnamed == 0


async def test_tables_stay_tables_on_a_phone(visit: Visit) -> None:
    page = (await visit("susan", width=375)).page
    snapshot = await page.get_by_role("table", name=re.compile("^Queue")).aria_snapshot()
    assert 'columnheader "State and reason"' in snapshot
    assert "row " in snapshot


async def test_squares_are_walked_with_the_arrow_keys_and_show_their_label(visit: Visit) -> None:
    page = (await visit("ada")).page
    first = page.locator(".squares a").first
    await first.focus()
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("ArrowRight")
    assert await focused(page) == "GPU 2 · A100 · bench, in use · joe: server “paper”"
    tip = page.locator(".squares a:focus .tip")
    await expect(tip).to_be_visible()
    await expect(tip).to_contain_text("joe: server “paper”")
    assert await page.locator(".squares a[tabindex='0']").count() == 1


async def test_times_are_exact_on_hover_in_the_readers_zone(visit: Visit) -> None:
    page = (await visit("susan", f"jobs/{MINE.id}", timezone_id="Asia/Tokyo", locale="en-GB")).page
    time = page.locator("dl time").first
    await expect(time).to_have_attribute("datetime", re.compile(r"Z$"))
    at = MINE.submitted.astimezone(UTC) + timedelta(hours=9)
    await expect(time).to_have_attribute("title", re.compile(f"{at:%H:%M:%S}"))


async def test_scripts_say_times_in_the_same_words_as_the_server(visit: Visit) -> None:
    page = (await visit("susan")).page
    seconds = [0, 4, 5, 59, 60, 3599, 3600, 3660, 86399, 86400, 10**7, -5, -61, -90000]
    said = await page.evaluate(
        """async (seconds) => {
            const { relative } = await import("/services/benchpool/static/times.js");
            return seconds.map(one => relative(0, one * 1000));
        }""",
        seconds,
    )
    assert said == [phrases.ago(one) for one in seconds]


async def test_who_wants_less_motion_gets_none(visit: Visit) -> None:
    page = (await visit("susan", reduced_motion="reduce")).page
    moving = await page.evaluate(
        """() => [...document.querySelectorAll('*')].map(one => getComputedStyle(one))
            .filter(style => style.transitionDuration !== '0s' || style.animationName !== 'none'
                             || style.scrollBehavior === 'smooth').length"""
    )
    assert moving == 0


async def test_the_page_asks_nobody_but_its_own_service(visit: Visit) -> None:
    for path in PAGES:
        seen = await visit("ada", path)
        await seen.page.wait_for_timeout(100)
        assert all(one.startswith(seen.url) for one in seen.requests)
        assert seen.violations == seen.faults == []
