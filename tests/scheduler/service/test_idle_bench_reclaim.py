"""Idle benches are warned and stopped by measurements and reports; other benches are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import AuditQuery
from benchpool_scheduler.contract.idle_benches import BenchAct, BenchCommand, BenchStep
from benchpool_scheduler.core.benches.idle import IdleStep, IdleWatch
from benchpool_scheduler.errors import Forbidden, InvalidInput, NotFound, Refused, Unavailable
from benchpool_scheduler.hub import HeldBench, HubServer
from benchpool_scheduler.service.observed.service_settings import Containers
from benchpool_support.idle_cases import IdleVerdict, cases, sightings
from benchpool_support.idle_site import IdleSite, configuration, made, running
from benchpool_support.pools import ADMIN, HUB, JOE, SUSAN, opened


async def acts(site: IdleSite) -> list[str]:
    page = await site.pool.audit.read(ADMIN, AuditQuery())
    return [it.action for it in reversed(page.records) if it.action.startswith("bench-")]


async def test_idle_watcher_has_no_false_positive_in_scripted_days(tmp_path: Path) -> None:
    verdicts: list[IdleVerdict] = []
    text = configuration(more="exempt: []")
    async with running(tmp_path, text) as site:
        watcher = site.pool.idle.watcher
        for case in cases():
            watcher.benches.clear()
            watcher.meet()
            bench, due, offset = watcher.benches[site.id], None, site.clock.now()
            site.executions = 0
            for minute, seen in sightings(case.story):
                site.clock.pass_s(offset + seen.at - site.clock.now())
                bench.kept_until = site.clock.now() + 1 if seen.spared else 0.0
                site.report_sighting(seen, seen.measured_s)
                watcher.look()
                if bench.watch.step is IdleStep.DUE:
                    due = minute
                    break
            verdicts.append(IdleVerdict(case, due))
    assert len(verdicts) == 200
    assert [(it.case.name, it.due, it.case.due) for it in verdicts if it.is_false] == []
    idle = [it for it in verdicts if it.case.due is not None]
    assert sum(it.is_missed for it in idle) <= 0.02 * len(idle)
    assert len(idle) >= 50


async def test_idle_bench_is_warned_and_stopped_after_note_timeout(tmp_path: Path) -> None:
    async with running(tmp_path) as site:
        steps = []
        for _ in range(62):
            await site.rest(1)
            steps.append(site.now().step)
        climbed = [BenchStep.IDLE, BenchStep.TOLD, BenchStep.ASKED, BenchStep.DUE]
        assert list(dict.fromkeys(steps)) == climbed
        assert (site.now().act, site.now().command) == (BenchAct.STOP, BenchCommand.NONE)
        assert set(site.hub.stopped) == {("susan", "")}  # the note did not arrive in time
        assert "bench-stop" in await acts(site)
        await site.pool.benches.release(HUB, site.id)
        await site.pool.idle.look()
        assert await acts(site) == ["bench-stop", "bench-stopped"]


@pytest.mark.parametrize("looks", [True, False])
async def test_bench_stop_audit_records_whether_gpus_were_free(tmp_path: Path, looks: bool) -> None:
    async with running(tmp_path) as site:
        site.runtime.on_gpus = () if looks else None  # None as on a cluster or without a driver
        site.pool.idle.release(SUSAN, site.id)
        site.report(noted=True)
        await site.pool.idle.look()
        await site.pool.benches.release(HUB, site.id)
        await site.pool.idle.look()
        page = await site.pool.audit.read(ADMIN, AuditQuery())
        (stopped,) = [it for it in page.records if it.action == "bench-stopped"]
        assert stopped.after["gpus_seen_free"] is looks


async def test_idle_bench_is_stopped_after_its_note(tmp_path: Path) -> None:
    async with running(tmp_path) as site:
        while site.now().step is not BenchStep.DUE:
            await site.rest(0.5)
        due_at = site.clock.now()
        assert (site.now().command, site.hub.stopped) == (BenchCommand.NOTE, [])
        site.report(noted=True)
        await site.pool.idle.look()
        assert site.hub.stopped == [("susan", "")]
        assert site.clock.now() - due_at < 60


async def test_idle_bench_releases_only_gpus_when_supported(tmp_path: Path) -> None:
    async with running(tmp_path) as site:
        site.gives_up = True
        while site.now().step is not BenchStep.DUE:
            await site.rest(0.5)
        assert (site.now().act, site.now().command) == (BenchAct.RELEASE, BenchCommand.RELEASE)
        site.runtime.on_gpus = (4711,)
        with pytest.raises(Refused, match="1 process is still") as held:
            await site.pool.idle.released(SUSAN, site.id)
        assert held.value.code == "gpu-held"
        site.runtime.on_gpus = None
        with pytest.raises(Unavailable, match="cannot be listed"):
            await site.pool.idle.released(SUSAN, site.id)
        assert site.pool.ledger.lease(site.id) is not None
        site.runtime.on_gpus = ()
        await site.pool.idle.released(SUSAN, site.id)
        assert site.pool.ledger.lease(site.id) is None
        await site.pool.idle.released(SUSAN, site.id)  # a repeat is harmless
        assert site.hub.stopped == []
        assert await acts(site) == ["bench-release", "bench-released"]


async def test_bench_ignoring_release_command_is_stopped(tmp_path: Path) -> None:
    async with running(tmp_path) as site:
        site.gives_up = True
        site.report()
        assert site.pool.idle.release(SUSAN, site.id).command is BenchCommand.RELEASE
        await site.rest(0.9, every_s=9)
        assert site.hub.stopped == []
        await site.rest(0.5, every_s=10)
        assert set(site.hub.stopped) == {("susan", "")}


async def test_bench_used_again_is_not_stopped(tmp_path: Path) -> None:
    async with running(tmp_path) as site:
        site.gives_up = True
        while site.now().step is not BenchStep.DUE:
            await site.rest(0.5)
        site.report(working=True)
        await site.pool.idle.look()
        site.clock.pass_s(120)
        await site.pool.idle.look()
        assert (site.now().command, site.hub.stopped) == (BenchCommand.NONE, [])


async def test_cluster_bench_is_always_stopped(tmp_path: Path) -> None:
    async with running(tmp_path, containers=Containers()) as site:
        site.gives_up = True
        await site.rest(1)
        assert site.now().act is BenchAct.STOP


async def test_disabled_idle_rule_never_acts(tmp_path: Path) -> None:
    async with running(tmp_path, configuration(act=False)) as site:
        await site.rest(130)
        now = site.now()
        assert (now.step, now.act) == (BenchStep.IDLE, BenchAct.NONE)
        assert (now.acts_at, now.next) == (None, None)
        assert now.idle_s > 7000
        assert site.pool.observed.now.idle_benches == {}
        assert (site.hub.stopped, await acts(site)) == ([], [])
        # After activation the rule starts again: a bench is due only after its warnings.
        await site.pool.configuration.apply(ADMIN, configuration())
        await site.rest(1)
        assert site.now().idle_s < 120
        await site.rest(57)
        assert site.hub.stopped == []


@pytest.mark.parametrize(
    ("exempt", "left_alone"),
    [
        ("{who: susan, until: 2027-12-31}", True),
        ('{who: "profile:large", until: 2027-12-31}', True),
        ('{who: "group:staff", until: 2027-12-31}', True),
        ('{who: "group:course", until: 2027-12-31}', False),
        ("{who: susan, until: 2026-12-31}", False),
    ],
    ids=["user", "profile", "group", "another-group", "ended"],
)
async def test_exemption_spares_bench_until_its_last_day(
    tmp_path: Path, exempt: str, left_alone: bool
) -> None:
    async with running(tmp_path, configuration(more=f"exempt: [{exempt}]")) as site:
        await site.rest(64)
        assert (site.hub.stopped == []) is left_alone
        assert (site.now().exempt_until is not None) is left_alone


async def test_bench_keep_is_limited_to_two_per_day(tmp_path: Path) -> None:
    async with running(tmp_path) as site:
        await site.rest(50)
        kept = await site.pool.idle.keep(SUSAN, site.id)
        assert (kept.step, kept.keeps_left) == (BenchStep.USED, 1)
        await site.rest(59)
        assert site.now().step is BenchStep.USED
        await site.pool.idle.keep(SUSAN, site.id)
        with pytest.raises(Refused, match="kept 2 times in 24 hours") as refused:
            await site.pool.idle.keep(SUSAN, site.id)
        assert refused.value.numbers == {"keeps": 2, "limit": 2}
        await site.rest(121)
        assert site.now().step is BenchStep.DUE


async def test_idle_step_survives_short_restart_only(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as site:
        await site.rest(50)
        await site.pool.idle.keep(SUSAN, site.id)
        lease, clock = site.lease, site.clock
    for away_s, stands in ((60.0, BenchStep.ASKED), (900.0, BenchStep.USED)):
        site = made(tmp_path, clock=clock)
        site.lease = lease
        async with opened(site.pool):
            assert site.now().keeps_left == 1
            site.pool.idle.watcher.benches[site.id].kept_until = 0.0
            site.pool.idle.watcher.benches[site.id].watch = asked_watch(site)
        clock.pass_s(away_s)
        site = made(tmp_path, clock=clock)
        site.lease = lease
        async with opened(site.pool):
            assert site.now().step is stands
            await site.rest(9)
            assert site.hub.stopped == []
            site.executions = 5  # cells ran while the scheduler was stopped
            site.clock.pass_s(30)
            site.report()
            await site.pool.idle.look()
            assert site.now().idle_s == 0


def asked_watch(site: IdleSite) -> IdleWatch:
    now = site.clock.now()
    return IdleWatch(IdleStep.ASKED, at=now, since=now - 3000, known_s=3000)


async def test_only_owner_keeps_and_releases_bench(tmp_path: Path) -> None:
    async with running(tmp_path) as site:
        for who, error in ((JOE, NotFound), (ADMIN, Forbidden), (HUB, Forbidden)):
            for ask in (site.pool.idle.keep, site.pool.idle.released):
                with pytest.raises(error):
                    await ask(who, site.id)
            with pytest.raises(error):
                site.pool.idle.release(who, site.id)
        assert len(site.pool.idle.list(ADMIN)) == 1
        assert site.pool.idle.list(JOE) == []
        assert site.now().command is BenchCommand.NONE


async def test_released_lease_is_not_rebuilt_from_hub(tmp_path: Path) -> None:
    async with running(tmp_path) as site:
        held = HeldBench(site.id, "s", tuple(site.lease.gpus if site.lease else ()))
        server = HubServer("susan", "", held=held, started=site.clock.now())
        site.hub.known_servers = (server,)
        await site.pool.idle.released(SUSAN, site.id)
        clock, lease = site.clock, site.lease
    site = made(tmp_path, clock=clock)
    site.lease, site.hub.known_servers = lease, (server,)
    async with opened(site.pool):
        await site.pool.reservations.reconcile()
        assert list(site.pool.ledger.leases()) == []


async def test_idle_rule_ignores_gaps_and_missing_reports(tmp_path: Path) -> None:
    async with running(tmp_path) as site:
        for minute in range(240):
            site.clock.pass_s(60)
            site.measure(0.0, 60.0)
            if minute % 5 == 0:  # the notebook server reports too rarely
                site.report()
            await site.pool.idle.look()
        assert site.hub.stopped == []
        for _ in range(240):
            site.clock.pass_s(60)
            site.report(working=None)
            site.measure(0.0, 60.0)
            await site.pool.idle.look()
        assert (site.hub.stopped, site.now().step) == ([], BenchStep.DOUBT)


def test_wrong_idle_rules_are_refused() -> None:
    for wrong, message in (
        ("{tell_s: 100, ask_s: 50}", "needs tell_s < ask_s < act_s"),
        ("{exempt: [{who: ann}]}", "has no `until`"),
        ("{exempt: [{who: 'team:x', until: 2026-12-31}]}", "profile:NAME"),
        ("{exempt: [{who: ann, until: soon}]}", "2026-12-31"),
        ("{acted: true}", "is not a known key"),
    ):
        with pytest.raises(InvalidInput, match=message):
            load(f"version: 1\nidle_benches: {wrong}\n")


async def test_idle_warning_notifies_owner_once_per_step(tmp_path: Path) -> None:
    async with running(tmp_path) as site:
        await site.rest(20)
        (((user, name), text),) = site.pool.observed.now.idle_benches.items()
        assert user == "susan"
        assert name.endswith("-told")
        assert "it is stopped at" in text
        await site.rest(30)
        assert [name.rpartition("-")[2] for _, name in site.pool.observed.now.idle_benches] == [
            "asked"
        ]
        site.report(working=True)
        await site.pool.idle.look()
        assert site.pool.observed.now.idle_benches == {}
