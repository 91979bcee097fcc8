"""The page *Fleet* in a real browser, over a real pool whose GPUs replayed a trace of jobs."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from benchpool_scheduler.contract import Job, LeaseRequest, State
from benchpool_scheduler.contract.audit import AuditQuery
from benchpool_scheduler.errors import Forbidden
from benchpool_scheduler.runtime import DeviceState, EndedBy
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.simulation.replay.trace import read
from benchpool_scheduler.telemetry import GpuSample, HeldSample, Holder, sqlite_storage
from benchpool_support.browser import Seen
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, HUB, make_pool, opened, reached, sleeper, story
from benchpool_support.scripted import STARTED, ScriptedRuntime, devices, machine
from benchpool_support.stage import application, served
from benchpool_support.traced_use import TEAMS, fill, worked_through

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

CONTRAST = Path(__file__).with_name("contrast.js").read_text()
TRACE = Path(__file__).parents[3] / "docs/cases/workload/week.csv"
HOUR, DAY = 3600.0, 86_400.0
PASSED_S = 95 * 60
SHOWN_AT = datetime.fromtimestamp(STARTED + 20 + 20 * 60 + PASSED_S, UTC)
USERS = [user for team in TEAMS.values() for user in team]
CALLERS = {name: Caller(name) for name in USERS} | {"ada": ADMIN}
NODES = tuple(
    machine(f"gpu-{number:02}", "A100" if number < 6 else "H200", 8) for number in range(1, 9)
)
QUOTAS = {"vision": 24, "speech": 10, "robotics": 20, "genomics": 2}
PRICES = "prices: {currency: CHF, gpu_hour: {A100: 2, H200: 4}}\n"
TEXT = (
    PRICES
    + "version: 1\nbuild: {default: 1, reserve: 8}\nprojects:\n"
    + "".join(
        f"  - {{name: {team}, quota: {QUOTAS[team]}, members: [{', '.join(users)}]}}\n"
        for team, users in TEAMS.items()
    )
)
JOBS = (
    *(("susan", 8), ("amara", 8), ("felix", 4), ("joe", 4), ("noor", 4)),
    *(("jemma", 8), ("yusuf", 2), ("oscar", 1), ("tariq", 2), ("tariq", 1)),
)
BUSY = {"susan": 0.93, "amara": 0.71, "felix": 0.0, "joe": 0.42, "noor": 0.18, "jemma": 0.96}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def clock() -> FakeClock:
    return FakeClock(STARTED)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory, clock: FakeClock) -> AsyncIterator[Pool]:
    """Yield a pool of 64 GPUs with a week of history, current jobs and benches."""
    state = tmp_path_factory.mktemp("fleet")
    (state / "scheduler").mkdir()
    week = worked_through(read(TRACE), NODES, STARTED - 7 * DAY, STARTED)
    fill(state / "scheduler" / sqlite_storage.FILE, week, minutes_since=STARTED - 1.25 * DAY)
    runtime = ScriptedRuntime(tuple(gpu for node in NODES for gpu in node))
    async with opened(
        make_pool(state, configuration=story(TEXT), runtime=runtime, clock=clock)
    ) as pool:
        runtime.mark(NODES[7][7].uuid, DeviceState.BROKEN, "XID 79: the GPU has fallen off the bus")
        runtime.mark(NODES[7][6].uuid, DeviceState.FOREIGN)
        await pool.housekeeping.look()
        await an_hour(pool, clock)
        yield pool


async def an_hour(pool: Pool, clock: FakeClock) -> None:
    """Start benches and jobs, and record samples while an hour and a half passes."""
    holders: dict[str, Holder] = {}
    for user in USERS[:6]:
        lease = await pool.benches.reserve(HUB, LeaseRequest(user, "", "1", 1))
        holders |= dict.fromkeys(lease.gpus, Holder(bench=lease.id, server="", user=user))
    for user, gpus in JOBS:
        sent = await pool.jobs.submit(CALLERS[user], sleeper(gpus=gpus, name=f"{user}-{gpus}"))
        job = await reached(pool, sent.id, State.RUNNING)
        held = [gpu for gpu, holder in pool.ledger.counters.holders.items() if holder == job.id]
        holder = Holder(job.id, 1, 0, user=user, project=job.project)
        holders |= dict.fromkeys(held, holder)
    job = await one_makes_way(pool, clock)
    held = [gpu for gpu, holder in pool.ledger.counters.holders.items() if holder == job.id]
    holders |= dict.fromkeys(held, Holder(job.id, 1, 0, user=job.user, project=job.project))
    begin = clock.now()
    clock.pass_s(PASSED_S)
    samples = [
        HeldSample(
            GpuSample(
                begin + at + 60,
                60.0,
                gpu,
                activity=activity(holder, at, gpu),
                memory_used_gib=3.0 if holder.bench else 41.0,
                memory_total_gib=80.0,
                energy_j=18_000.0,
                xid=31 if holder.user == "noor" and holder.job and at == 3000 else None,
            ),
            holder,
        )
        for gpu, holder in holders.items()
        for at in range(0, PASSED_S, 60)
    ]
    pool.use.telemetry.write(samples)
    pool.metering.live.see(samples)


async def one_makes_way(pool: Pool, clock: FakeClock) -> Job:
    """Let a borrowing job be preempted by a claimant, and leave a third job waiting."""
    runtime = pool.runtime
    assert isinstance(runtime, ScriptedRuntime)
    borrows = await pool.jobs.submit(CALLERS["tariq"], sleeper(gpus=8, name="protein-folds"))
    await reached(pool, borrows.id, State.RUNNING)
    clock.pass_s(20 * 60)
    claims = await pool.jobs.submit(CALLERS["oscar"], sleeper(gpus=8, name="grasp-policy"))
    ((worker, _),) = await runtime.until_noticed(1)
    assert worker.job == borrows.id
    clock.pass_s(20)
    runtime.end(worker, 143, EndedBy.NOTICE, at=clock.now())
    await reached(pool, claims.id, State.RUNNING)
    await pool.jobs.submit(CALLERS["noor"], sleeper(gpus=8, name="whisper-large"))
    return claims


def activity(holder: Holder, at: int, gpu: str) -> float:
    """Return the fraction of a minute in which kernels ran."""
    if holder.bench is not None:
        return 0.6 if holder.user == "susan" and at % 1800 < 500 else 0.0
    usual = BUSY.get(holder.user or "", 0.8)
    return max(0.0, usual - 0.3 * ((at // 600 + len(gpu)) % 3 == 0)) if usual else 0.0


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def address(pool: Pool, clock: FakeClock) -> AsyncIterator[str]:
    with served(lambda: application(pool, CALLERS, clock=clock)) as url:
        yield url


async def opens(browser: Browser, address: str, path: str, reader: str, **more: object) -> Seen:
    window = {"viewport": {"width": 1440, "height": 900}, **more}
    context = await browser.new_context(**window)  # type: ignore[arg-type]
    await context.add_cookies([{"name": "reader", "value": reader, "url": address}])
    seen = Seen(await context.new_page(), address)
    seen.watch()
    await seen.page.clock.set_fixed_time(SHOWN_AT)
    await seen.page.goto(address + path)
    return seen


async def test_last_hour_of_gpus_is_shown_at_all_widths(address: str, browser: Browser) -> None:
    for scheme in ("light", "dark"):
        for width in (1440, 390):
            seen = await opens(
                browser,
                address,
                "fleet",
                "ada",
                color_scheme=scheme,
                viewport={"width": width, "height": 900},
            )
            page = seen.page
            await expect(page.locator("table.grid")).to_have_count(8)
            await expect(page.locator("#live")).to_have_text("live")
            await expect(page.locator("#week canvas")).to_be_visible()
            if folder := os.environ.get("BENCHPOOL_SCREENSHOTS"):
                file = Path(folder) / f"fleet-{scheme}-{width}.png"
                await page.screenshot(path=file, full_page=True)
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            weak, _ = await page.evaluate(CONTRAST)
            assert weak == []
            assert (seen.violations, seen.faults) == ([], [])


async def test_cell_names_gpu_holder_and_activity(address: str, browser: Browser) -> None:
    page = (await opens(browser, address, "fleet", "ada")).page
    held = page.get_by_role("cell", name="felix training: idle")
    await expect(held).to_have_count(4 * 7)
    assert "idle-training" in (await held.first.get_attribute("class") or "").split()
    await expect(held.first).to_have_text("F")
    computing = page.get_by_role("cell", name=re.compile("^susan training: .* active"))
    await expect(computing).to_have_count(8 * 7)
    await expect(page.get_by_role("cell", name="broken or closed")).not_to_have_count(0)


async def test_hours_of_day_are_shown_as_chart_and_table(
    pool: Pool, clock: FakeClock, address: str, browser: Browser
) -> None:
    page = (await opens(browser, address, "fleet", "ada")).page
    day = await pool.use.fleet.day()
    begun_h = clock.now() % HOUR / HOUR
    assert sum(day.total.gpu_h.values()) == pytest.approx(64 * (24 + begun_h))
    await expect(page.locator("svg.hours > g")).to_have_count(len(day.hours))
    await page.locator("#today summary").click()
    twin = page.get_by_role("table", name="Last 24 hours GPU-hours by class")
    await expect(twin.locator("tbody tr")).to_have_count(len(day.hours))


async def test_administrator_sees_waste_starvation_and_preemptions(
    address: str, browser: Browser
) -> None:
    page = (await opens(browser, address, "fleet", "ada")).page
    rows = page.get_by_role("table", name="Projects by waste").locator("tbody tr")
    assert await rows.count() == len(TEAMS)
    waste = [
        float(text.replace(",", "")) for text in await rows.locator("td.strong").all_inner_texts()
    ]
    assert waste == sorted(waste, reverse=True)
    await expect(page.locator("#starved")).to_contain_text(
        "speech holds 8 of 10 GPUs; 1 job waits."
    )
    await expect(page.locator("#starved")).to_contain_text("genomics (1)")
    paid = page.locator("#preemptions li")
    await expect(paid).to_contain_text(
        "protein-folds of tariq (genomics) gave 8 GPUs to oscar (robotics)"
    )
    await expect(paid).to_contain_text("R15, owed to a project below its share.")
    idle = page.get_by_role("table", name="Idle benches")
    await expect(idle.locator("tbody tr")).to_have_count(5)
    await expect(idle).to_contain_text("1.58")
    errors = page.get_by_role("table", name="Driver errors")
    await expect(errors).to_contain_text("31 the program used memory that is not its own")
    await expect(page.locator("#health")).to_contain_text("GPUs")


async def test_idle_bench_is_reclaimed_from_fleet_page(
    pool: Pool, address: str, browser: Browser
) -> None:
    page = (await opens(browser, address, "fleet", "ada")).page
    row = page.get_by_role("table", name="Idle benches").locator("tbody tr").first
    user = await row.locator("th bdi").first.inner_text()
    await row.get_by_text("Reclaim…").click()
    await row.get_by_label("Reason").fill("two people wait")
    await row.get_by_role("button", name="Send request").click()
    await expect(row.locator(".asked")).to_contain_text("ada requests its release")
    await expect(row.locator(".asked")).to_contain_text("two people wait")
    await expect(page).to_have_url(f"{address}fleet")
    (lease,) = pool.benches.leases(CALLERS[user])
    assert lease.reclaim_request is not None
    (record,) = (await pool.audit.read(ADMIN, AuditQuery(action="ask_back"))).records
    assert (record.actor, record.target) == ("ada", lease.id)


async def test_week_chart_is_drawn_again_after_update(address: str, browser: Browser) -> None:
    seen = await opens(browser, address, "fleet", "ada")
    page = seen.page
    await expect(page.locator("#week canvas")).to_have_count(1)
    await page.locator("#week summary").click()
    await expect(page.locator("#week tbody tr")).to_have_count(7 * 24)
    await page.evaluate("document.dispatchEvent(new Event('benchpool-shown'))")
    await expect(page.locator("#week canvas")).to_have_count(1)
    assert (seen.violations, seen.faults) == ([], [])


async def test_arrow_keys_read_chart_values(address: str, browser: Browser) -> None:
    page = (await opens(browser, address, "fleet", "ada")).page
    chart = page.get_by_role("img", name=re.compile("^GPUs held, computing and free"))
    await chart.focus()
    status = page.locator("#week [role=status]")
    await chart.press("End")
    rows = page.locator("#week tbody tr")
    for key, row in (("", 0), ("ArrowLeft", 1), ("Home", 167), ("PageDown", 143)):
        if key:
            await chart.press(key)
        at = rows.nth(row)
        begin = await at.locator("th").text_content()
        held, computing, wanted = await at.locator("td").all_text_contents()
        await expect(status).to_have_text(
            f"{begin}: Held {held}, Computing {computing}, Free though wanted {wanted}"
        )
    moved = page.locator("#week .u-cursor-x")
    before = await moved.get_attribute("style")
    await chart.press("ArrowRight")
    assert await moved.get_attribute("style") != before


async def test_projects_are_sorted_by_selected_column(address: str, browser: Browser) -> None:
    page = (await opens(browser, address, "fleet", "ada")).page
    await page.get_by_role("link", name="Project", exact=True).click()
    table = page.get_by_role("table", name="Projects by waste")
    await expect(table.locator("tbody th")).to_have_text(sorted(TEAMS))
    await expect(table.locator("th[aria-sort=ascending]")).to_have_text("Project")


async def test_fleet_page_hides_foreign_names_from_users(address: str, browser: Browser) -> None:
    page = (await opens(browser, address, "fleet", "noor")).page
    await expect(page.get_by_role("cell", name=re.compile("^noor training"))).to_have_count(4 * 7)
    text = await page.content()
    assert [name for name in USERS if name != "noor" and name in text] == []
    await expect(page.locator("#waste, #starved, #idle, #preemptions, #health")).to_have_count(0)
    others = page.get_by_role("cell", name=re.compile("^training: .* active"))
    await expect(others).not_to_have_count(0)


async def test_use_of_all_projects_is_rejected_for_users(
    pool: Pool,
) -> None:
    with pytest.raises(Forbidden):
        await pool.use.fleet.week(CALLERS["joe"])
    with pytest.raises(Forbidden):
        pool.use.fleet.preemptions(CALLERS["joe"], 1)


async def test_new_pool_shows_empty_states(
    tmp_path: Path, browser: Browser, clock: FakeClock
) -> None:
    runtime = ScriptedRuntime(devices(16))
    made = make_pool(tmp_path, configuration=story(TEXT), runtime=runtime, clock=clock)
    async with opened(made) as fresh:
        with served(lambda: application(fresh, CALLERS, clock=clock)) as url:
            page = (await opens(browser, url, "fleet", "ada")).page
            for words in (
                "No GPU is held.",
                "No complete hour is recorded yet.",
                "No project has held a GPU in the last 7 days.",
                "No bench with measured GPUs is idle.",
                "No preemptions in the last 7 days.",
                "Simulated GPUs.",
            ):
                await expect(page.locator("main")).to_contain_text(words)


async def test_kiosk_page_shows_no_names(address: str, browser: Browser) -> None:
    for reader in ("ada", "noor"):
        seen = await opens(
            browser, address, "kiosk", reader, viewport={"width": 1920, "height": 1080}
        )
        await expect(seen.page.locator("table.grid")).to_have_count(8)
        await expect(seen.page.locator("#live")).to_have_text("live")
        content = await seen.page.locator("main").inner_html()
        assert [name for name in USERS if name in content] == []
        assert await seen.page.evaluate("document.documentElement.scrollHeight") <= 1080
        assert await seen.page.get_by_role("link").count() == 1  # the skip link to the content
        assert (seen.violations, seen.faults) == ([], [])
        if folder := os.environ.get("BENCHPOOL_SCREENSHOTS"):
            await seen.page.screenshot(path=Path(folder) / "kiosk.png")


async def test_user_page_shows_quotas_free_gpus_and_own_jobs(
    address: str, browser: Browser
) -> None:
    for scheme in ("light", "dark"):
        for width in (1440, 390):
            seen = await opens(
                browser,
                address,
                "mine",
                "noor",
                color_scheme=scheme,
                viewport={"width": width, "height": 900},
            )
            page = seen.page
            await expect(page.locator("#live")).to_have_text("live")
            if folder := os.environ.get("BENCHPOOL_SCREENSHOTS"):
                await page.screenshot(
                    path=Path(folder) / f"mine-{scheme}-{width}.png", full_page=True
                )
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            weak, _ = await page.evaluate(CONTRAST)
            assert weak == []
            assert (seen.violations, seen.faults) == ([], [])
    await expect(page.locator("#quota")).to_contain_text("1 of 1")
    await expect(page.locator("#quota")).to_contain_text("now: 2 within the quota, 2 borrowed")
    rows = page.get_by_role("table", name="Held GPUs").locator("tbody tr")
    await expect(rows).to_have_count(2)
    await expect(rows.first).to_contain_text("noor-4")
    await expect(rows.first.get_by_role("img")).to_have_attribute(
        "aria-label", re.compile("^last hour: 1[0-9] % active in the mean")
    )
    await expect(rows.last).to_contain_text("idle since")
    await expect(rows.first).to_contain_text(
        "41 of 80 GB, 39 free on the fullest GPU; mean of the last hour 41 GB"
    )
    held_h = 4 * (20 * 60 + 20 + PASSED_S) / HOUR
    energy_kwh = 4 * PASSED_S * 300 / HOUR / 1000
    await expect(rows.first).to_contain_text(
        f"{held_h:.2f} GPU-hours, {energy_kwh:.2f} kWh, {2 * held_h:.2f} CHF"
    )
    await expect(rows.last).to_contain_text(re.compile(r"GPU-hours, .* Wh, .* CHF"))
    await expect(page.locator("#waiting")).to_contain_text("whisper-large")
    content = await page.locator("main").inner_html()
    assert [name for name in USERS if name != "noor" and name in content] == []
