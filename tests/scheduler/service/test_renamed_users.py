"""A bench of a renamed Hub user counts against the new name, and the user's jobs are reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchpool_scheduler.contract import LeaseRequest, State
from benchpool_scheduler.errors import Refused
from benchpool_scheduler.hub import HeldBench, HubServer, HubUser, StaticDirectory
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.benches.reservations import GONE_S
from benchpool_scheduler.service.observed.left_users import LeftUsers
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, HUB, SUSAN, make_pool, opened, reached, sleeper, story
from benchpool_support.scripted import ScriptedRuntime, devices

ADA, SUE = HubUser("ada", admin=True, created=1.0), HubUser("susan", created=2.0)
QUOTAS = story(
    """
version: 1
build: {users: {susan: 2, sue: 1}}
projects: [{name: p, quota: 2, members: [susan]}]
"""
)


def ask(user: str, server: str = "", spawn: str = "1") -> LeaseRequest:
    return LeaseRequest(user=user, server=server, spawn=spawn, gpus=1)


class RenamingHub(StaticDirectory):
    """A Hub in which susan runs a server, and that renames her at the next refresh."""

    renamed = False

    async def refresh(self) -> None:
        if self.renamed:
            self.known_users = (ADA, replace(SUE, name="sue"))
            self.known_servers = tuple(
                replace(it, user="sue") if it.user == "susan" else it
                for it in self.known_servers or ()
            )


async def bench_of_susan(pool: Pool, hub: RenamingHub, *, shows_state: bool) -> str:
    lease = await pool.benches.reserve(HUB, ask("susan"))
    held = HeldBench(lease.id, lease.spawn, tuple(lease.gpus)) if shows_state else None
    hub.known_servers = (HubServer("susan", "", held=held),)
    await pool.housekeeping.ask_hub()
    pool.idle.watcher.meet()
    return lease.id


def holders(pool: Pool) -> list[tuple[str, str]]:
    return [(it.user, it.id) for it in pool.benches.leases(ADMIN)]


@pytest.mark.parametrize("shows_state", [True, False], ids=["one machine", "cluster"])
async def test_bench_counts_against_new_name_at_next_start(
    tmp_path: Path, shows_state: bool
) -> None:
    hub, clock = RenamingHub((ADA, SUE), ()), FakeClock()
    runtime = ScriptedRuntime(devices(4))
    pool = make_pool(tmp_path, configuration=QUOTAS, directory=hub, runtime=runtime, clock=clock)
    async with opened(pool):
        lease = await bench_of_susan(pool, hub, shows_state=shows_state)
        hub.renamed = True
        with pytest.raises(Refused, match=r"build quota of sue: 1 .*1 held"):
            await pool.benches.reserve(HUB, ask("sue", "two"))
        assert holders(pool) == [("sue", lease)]
        pool.idle.watcher.meet()
        assert pool.idle.watcher.bench(pool.ledger.leases()[0]).lease.user == "sue"
        for _ in range(2):  # the server still runs, so its GPU stays assigned
            await pool.housekeeping.ask_hub()
            clock.pass_s(GONE_S + 1)
        await pool.housekeeping.ask_hub()
        assert holders(pool) == [("sue", lease)]
        assert "invariant" not in " ".join(pool.views.status(ADMIN).health.problems)
        hub.known_servers = ()
        await pool.benches.release(HUB, lease)
        assert holders(pool) == []


async def test_rename_is_recognized_after_restart(
    tmp_path: Path,
) -> None:
    hub = RenamingHub((ADA, SUE), ())
    runtime = ScriptedRuntime(devices(4))
    async with opened(
        make_pool(tmp_path, configuration=QUOTAS, directory=hub, runtime=runtime)
    ) as pool:
        lease = await bench_of_susan(pool, hub, shows_state=True)
    hub.renamed = True
    again = make_pool(tmp_path, configuration=QUOTAS, directory=hub, runtime=runtime)
    async with opened(again) as pool:
        assert holders(pool) == [("sue", lease)]


async def test_reused_user_name_inherits_no_bench(tmp_path: Path) -> None:
    hub = RenamingHub((ADA, SUE), ())
    runtime = ScriptedRuntime(devices(4))
    async with opened(
        make_pool(tmp_path, configuration=QUOTAS, directory=hub, runtime=runtime)
    ) as pool:
        lease = await bench_of_susan(pool, hub, shows_state=False)
        hub.renamed = True
        await pool.housekeeping.ask_hub()
        hub.renamed = False
        hub.known_users = (*hub.known_users, HubUser("susan", created=3.0))
        await pool.housekeeping.ask_hub()
        own = await pool.benches.reserve(HUB, ask("susan", spawn="2"))
        hub.known_servers = (*(hub.known_servers or ()), HubServer("susan", ""))
        await pool.housekeeping.ask_hub()
        assert sorted(holders(pool)) == [("sue", lease), ("susan", own.id)]


async def test_jobs_of_renamed_user_are_reported(tmp_path: Path) -> None:
    hub = RenamingHub((ADA, SUE), ())
    async with opened(make_pool(tmp_path, directory=hub)) as pool:
        await pool.housekeeping.ask_hub()
        job = await pool.jobs.submit(SUSAN, sleeper())
        await reached(pool, job.id, State.RUNNING)
        hub.renamed = True
        await pool.housekeeping.ask_hub()
        (problem,) = pool.views.status(ADMIN).health.problems
        assert "The Hub has renamed susan to sue, and 1 job sent under the old name" in problem
        assert "`benchpool jobs --user susan --live`" in problem
        (row,) = [it for it in pool.people.all(ADMIN) if it.name == "susan"]
        assert (row.known, row.jobs) == (False, 1)
        await pool.jobs.act(ADMIN, job.id, "cancel")
        await reached(pool, job.id, State.CANCELLED)
        await pool.housekeeping.ask_hub()
        assert pool.views.status(ADMIN).health.problems == []


async def test_reverted_rename_is_not_reported(tmp_path: Path) -> None:
    hub = RenamingHub((ADA, SUE), ())
    async with opened(make_pool(tmp_path, directory=hub)) as pool:
        await pool.housekeeping.ask_hub()
        job = await pool.jobs.submit(SUSAN, sleeper())
        await reached(pool, job.id, State.RUNNING)
        for name in ("sue", "susan"):
            hub.known_users = (ADA, replace(SUE, name=name))
            await pool.housekeeping.ask_hub()
        assert pool.views.status(ADMIN).health.problems == []


def test_deleted_user_is_not_confused_with_equally_old_user() -> None:
    left, bob = LeftUsers(), HubUser("bob", created=2.0)
    left.learn([ADA, SUE, bob], 1.0)
    left.learn([ADA, bob], 2.0)
    assert left.renamed == {}
    left.learn([ADA, replace(bob, name="bill")], 3.0)
    assert left.renamed == {"bob": "bill"}
    left.learn([ADA, replace(bob, name="will")], 4.0)
    assert left.renamed == {"bob": "will", "bill": "will"}
    left.learn([ADA, HubUser("will", created=3.0)], 5.0)  # another user
    assert left.renamed == {}
