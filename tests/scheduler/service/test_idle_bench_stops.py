"""The Hub stops idle servers; a bench in use is left alone until the Hub has accepted its stop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from benchpool_scheduler.contract import AuditQuery
from benchpool_scheduler.contract.idle_benches import BenchAct, BenchStep
from benchpool_scheduler.core.benches.giving_back import (
    GIVING,
    HUB_STOPS,
    STOPS,
    TAKES_S,
    Giving,
    GivingNews,
)
from benchpool_scheduler.core.benches.idle import Sighting
from benchpool_scheduler.errors import Refused
from benchpool_support.idle_site import IdleSite, configuration, running
from benchpool_support.pools import ADMIN, HUB, SUSAN

PROBLEM = "idle-benches"


async def stopped_records(site: IdleSite) -> int:
    page = await site.pool.audit.read(ADMIN, AuditQuery())
    return sum(it.action == "bench-stopped" for it in page.records)


async def compute(site: IdleSite, minutes: int, **seen: float | bool) -> None:
    """Let time pass in which the bench is used as ``seen``."""
    for _ in range(minutes * 2):
        site.clock.pass_s(30)
        facts = {"activity": 0.0, "working": False, **seen}
        await site.pass_by(Sighting(0.0, 30.0, **facts), 30.0)  # type: ignore[arg-type]


async def runs_cells(site: IdleSite) -> None:
    await compute(site, 10, executed=True)


async def computes_on_gpu(site: IdleSite) -> None:
    await compute(site, 10, activity=0.9)


async def computes_on_cpu(site: IdleSite) -> None:
    await compute(site, 10, working=True)


async def is_kept(site: IdleSite) -> None:
    kept = await site.pool.idle.keep(SUSAN, site.id)
    assert (kept.step, kept.stopping, kept.keeps_left) == (BenchStep.USED, False, 1)
    await site.rest(10)


async def becomes_exempt(site: IdleSite) -> None:
    exempt = "exempt: [{who: susan, until: 2027-12-31}]"
    await site.pool.configuration.apply(ADMIN, configuration(more=exempt))
    await site.rest(10)


async def is_unknown(site: IdleSite) -> None:
    site.clock.pass_s(900)
    await site.pool.idle.look()


async def rule_is_disabled(site: IdleSite) -> None:
    await site.pool.configuration.apply(ADMIN, configuration(act=False))
    await site.rest(10)


@pytest.mark.parametrize(
    "change",
    [
        runs_cells,
        computes_on_gpu,
        computes_on_cpu,
        is_kept,
        becomes_exempt,
        is_unknown,
        rule_is_disabled,
    ],
)
async def test_bench_not_idle_anymore_survives_hub_outage(
    tmp_path: Path, change: Callable[[IdleSite], Awaitable[None]]
) -> None:
    async with running(tmp_path) as site:
        site.hub.refuses = True
        await site.rest(63)
        assert site.now().stopping
        await change(site)
        assert (site.now().stopping, PROBLEM in site.pool.observed.now.problems) == (False, False)
        site.hub.refuses = False
        await site.rest(40)
        assert site.hub.stopped == []
        await site.pool.benches.release(HUB, site.id)  # its owner stops the server later
        await site.pool.idle.look()
        assert await stopped_records(site) == 0


async def test_refused_stop_is_reported_and_retried(tmp_path: Path) -> None:
    async with running(tmp_path) as site:
        site.hub.refuses = True
        await site.rest(63)
        assert site.pool.observed.now.problems[PROBLEM] == (
            "An idle bench of susan is not stopped: the Hub refuses to stop it (HTTP 403)."
        )
        assert (site.now().act, site.now().stopping) == (BenchAct.STOP, True)
        site.hub.refuses = False
        await site.rest(1)
        assert site.hub.stopped == [("susan", "")]
        assert PROBLEM not in site.pool.observed.now.problems


async def test_accepted_stop_without_effect_is_repeated_only_while_idle(tmp_path: Path) -> None:
    async with running(tmp_path) as site:
        await site.rest(62)
        assert site.hub.stopped == [("susan", "")]
        await site.rest(1.5)
        assert site.hub.stopped == [("susan", "")] * 2
        await compute(site, 10, working=True)
        assert site.hub.stopped == [("susan", "")] * 2
        assert (site.now().step, site.now().stopping) == (BenchStep.CPU_PHASE, False)


async def test_keep_is_refused_while_hub_stops_server(tmp_path: Path) -> None:
    answers: list[str] = []

    async def keep() -> None:
        with pytest.raises(Refused, match="The Hub is stopping this bench") as refused:
            await site.pool.idle.keep(SUSAN, site.id)
        answers.append(refused.value.code)

    async with running(tmp_path) as site:
        site.hub.meanwhile = keep
        await site.rest(61.5)
        assert answers == ["bench-stops"]  # the request is in progress
        site.clock.pass_s(10)
        site.report(working=True)  # too late: the request is accepted
        await site.pool.idle.look()
        await keep()
        assert (site.now().stopping, site.hub.stopped) == (True, [("susan", "")])


@pytest.mark.parametrize("used", [False, True])
async def test_owner_request_is_retried_until_bench_is_used(tmp_path: Path, used: bool) -> None:
    async with running(tmp_path) as site:
        site.hub.refuses = True
        await compute(site, 1, working=True)  # the owner releases the bench beside running work
        site.pool.idle.release(SUSAN, site.id)
        await site.rest(2)
        assert (site.now().asked, site.now().stopping) == (True, True)
        await compute(site, 2, working=used)
        site.hub.refuses = False
        await site.rest(2)
        assert (site.hub.stopped == []) is used
        assert site.now().asked is not used


async def test_server_stopped_before_hub_answers_is_recorded(tmp_path: Path) -> None:
    async def stops() -> None:
        await site.pool.benches.release(HUB, site.id)
        assert site.pool.idle.list(SUSAN) == []

    async with running(tmp_path) as site:
        site.hub.meanwhile = stops
        site.pool.idle.release(SUSAN, site.id)
        site.report(noted=True)
        await site.pool.idle.look()
        await site.pool.idle.look()
        assert (site.hub.stopped, await stopped_records(site)) == ([("susan", "")], 1)


def test_release_state_table_is_complete() -> None:
    assert set(GIVING) == set(Giving)
    for row in GIVING.values():
        assert set(row) == set(GivingNews)
    # Use ends every step except the one in which the Hub stops the server.
    for step in set(Giving) - {Giving.STOPPING}:
        assert GIVING[step][GivingNews.USED] is Giving.NONE
    # Every step ends: by a timeout, or because the Hub is asked at the next look.
    assert set(TAKES_S) == set(Giving) - {Giving.NONE, Giving.STOP_DUE}
    # Only a request that is due reaches the Hub.
    before = {step for step in Giving if GIVING[step][GivingNews.REQUESTED] is Giving.STOPPING}
    assert before == {Giving.STOP_DUE, Giving.STOPPING}
    assert HUB_STOPS < STOPS
