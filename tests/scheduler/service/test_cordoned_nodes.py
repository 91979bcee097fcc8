"""Drain, note and maintenance window of nodes: they block starts, and waiting jobs show why."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchpool_scheduler.contract import GpuState, Job, LeaseRequest, State
from benchpool_scheduler.contract.changes import JobChange
from benchpool_scheduler.contract.nodes import (
    NodeIntake,
    NodeNote,
    NodeOpened,
    NodeReason,
    NodeWindow,
    PoolNode,
)
from benchpool_scheduler.errors import Forbidden, InvalidInput, NotFound, Unavailable
from benchpool_scheduler.runtime import Launch
from benchpool_scheduler.service import Clock, Pool
from benchpool_support.bench_lines import line, place
from benchpool_support.clocks import FakeClock, LeapingClock
from benchpool_support.pools import (
    ADMIN,
    HUB,
    SUSAN,
    decided,
    make_pool,
    opened,
    reached,
    sleeper,
    story,
    until_job,
)
from benchpool_support.scripted import ScriptedRuntime, machine

ROOM = story(
    """
version: 1
build: {users: {susan: 2}, reserve: 0}
projects: [{name: susan, quota: unlimited, members: [susan]}]
"""
)
NEW_DISK = NodeReason("new disk")


class PromptRuntime(ScriptedRuntime):
    """Runtime whose workers run as soon as they are launched."""

    def __init__(self, clock: Clock) -> None:
        super().__init__((*machine("n1", gpus=2), *machine("n2", gpus=2)), start_at_once=False)
        self._clock = clock

    async def run_worker(self, launch: Launch) -> None:
        """Record the launch, and begin."""
        await super().run_worker(launch)
        self.begin(launch.worker, self._clock.now())


def two_machines(tmp_path: Path, clock: Clock) -> Pool:
    return make_pool(tmp_path, configuration=ROOM, runtime=PromptRuntime(clock), clock=clock)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def pool(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Pool]:
    async with opened(two_machines(tmp_path, clock)) as pool:
        yield pool


def node(pool: Pool, name: str) -> PoolNode:
    return next(it for it in pool.nodes.nodes(SUSAN) if it.name == name)


def window(
    pool: Pool, starts_in_s: float, reason: str = "new disk", lasts_s: int = 3600
) -> NodeWindow:
    begins = pool.observed.settings.clock.now() + starts_in_s
    return NodeWindow(datetime.fromtimestamp(begins, UTC), lasts_s, reason)


async def placed(pool: Pool, **asked: object) -> tuple[Job, set[str]]:
    """Submit a job; return it once it runs or has a wait reason, and the nodes it runs on."""
    job = await decided(pool, (await pool.jobs.submit(SUSAN, sleeper(**asked))).id)
    attempts = pool.jobs.detail(ADMIN, job.id).attempts
    held = pool.ledger.counters.holders
    return job, {gpu.partition("/")[0] for gpu, of in held.items() if of == job.id and attempts}


async def over(pool: Pool, job: Job) -> None:
    """Let a job succeed."""
    assert isinstance(pool.runtime, ScriptedRuntime)
    pool.runtime.end(next(it for it in pool.runtime.launched if it.job == job.id))
    await reached(pool, job.id, State.SUCCEEDED)


async def test_drained_node_takes_no_start_and_keeps_running_jobs(pool: Pool) -> None:
    ran, at = await placed(pool, gpus=2)
    (busy,) = at
    await pool.nodes.drain(ADMIN, busy, NEW_DISK)
    drained = node(pool, busy)
    assert (drained.intake, drained.reason, drained.by) == (
        NodeIntake.DRAINING,
        "new disk",
        ADMIN.name,
    )
    assert drained.text == f"{busy} drains (new disk): no job starts there, running jobs go on."
    other = ({"n1", "n2"} - at).pop()
    assert (await placed(pool, gpus=2))[1] == {other}
    await over(pool, ran)
    waits, nowhere = await placed(pool, gpus=2)
    assert not nowhere
    assert waits.reason is not None
    assert waits.reason.text.endswith(f"; {busy} drains (new disk).")
    counts = pool.views.status(ADMIN).counts
    assert (counts[GpuState.CLOSED], counts[GpuState.FREE]) == (2, 0)
    assert "2 closed by administrators, 0 free" in pool.views.status(ADMIN).text
    await pool.nodes.open(ADMIN, busy, NodeOpened())
    await until_job(pool, waits.id, lambda job: job.state is not State.QUEUED)
    assert node(pool, busy).intake is NodeIntake.OPEN


async def test_reason_names_drained_nodes(pool: Pool) -> None:
    for name in ("n1", "n2"):
        await pool.nodes.drain(ADMIN, name, NEW_DISK)
    job, _ = await placed(pool, gpus=2)
    assert job.reason is not None
    assert job.reason.code == "nodes-closed"
    assert job.reason.text == (
        "Waits for 2 GPUs on a node that accepts jobs: n1 drains (new disk), n2 drains (new disk)."
    )
    assert job.reason.remedy == "It starts by itself when they accept jobs again."
    preview = await pool.jobs.preview(SUSAN, sleeper(gpus=2))
    assert preview.starts == "waits"
    assert "drains (new disk)" in preview.text


async def test_maintenance_window_admits_only_shorter_jobs(pool: Pool) -> None:
    await pool.nodes.drain(ADMIN, "n2", NodeReason("no fan"))
    await pool.nodes.maintain(ADMIN, "n1", window(pool, 3599))
    open_ended, _ = await placed(pool, gpus=1)
    too_long, _ = await placed(pool, gpus=1, time_limit_s=7200)
    _, there = await placed(pool, gpus=1, time_limit_s=1800)
    assert there == {"n1"}
    assert (open_ended.state, too_long.state) == (State.QUEUED, State.QUEUED)
    for waits in (open_ended, too_long):
        assert waits.reason is not None
        assert waits.reason.code == "nodes-closed"
        assert "n1 accepts only jobs whose time limit ends before its maintenance, from 20" in (
            waits.reason.text
        )
        assert waits.reason.remedy.startswith("It would start now on n1 with a time limit of 59 ")


async def test_advised_time_limit_starts_job_before_maintenance(pool: Pool) -> None:
    await pool.nodes.drain(ADMIN, "n2", NodeReason("no fan"))
    await pool.nodes.maintain(ADMIN, "n1", window(pool, 3600))
    waits, _ = await placed(pool, gpus=1)
    assert waits.reason is not None
    advised = int(waits.reason.numbers["time_limit_s"] or 0)
    await pool.jobs.act(SUSAN, waits.id, "change", JobChange(time_limit_s=advised))
    await until_job(pool, waits.id, lambda job: job.state is not State.QUEUED)


async def test_maintenance_window_closes_and_reopens_node(
    tmp_path: Path,
) -> None:
    """Only time passes."""

    def closed(job: Job) -> bool:
        return job.reason is not None and "n1 is in maintenance until 20" in job.reason.text

    async with opened(two_machines(tmp_path, LeapingClock())) as pool:
        await pool.nodes.drain(ADMIN, "n2", NodeReason("no fan"))
        await pool.nodes.maintain(ADMIN, "n1", window(pool, 1))
        job = await pool.jobs.submit(SUSAN, sleeper(gpus=1))
        await until_job(pool, job.id, closed)
        assert node(pool, "n1").intake is NodeIntake.MAINTENANCE
        await pool.nodes.maintain(ADMIN, "n1", window(pool, -59, lasts_s=60))
        await until_job(pool, job.id, lambda it: it.state is not State.QUEUED)
        assert node(pool, "n1").window is None


async def test_approaching_maintenance_window_blocks_job(pool: Pool, clock: FakeClock) -> None:
    await pool.nodes.drain(ADMIN, "n2", NodeReason("no fan"))
    first, _ = await placed(pool, gpus=2)
    waits, _ = await placed(pool, gpus=2, time_limit_s=60)
    await pool.nodes.maintain(ADMIN, "n1", window(pool, 61))
    await pool.passes.make()
    before = pool.jobs.detail(ADMIN, waits.id).job.reason
    assert before is not None
    assert before.code != "nodes-closed"
    clock.pass_s(2)  # only the passed time changes the answer
    await over(pool, first)

    def is_blocked(job: Job) -> bool:
        return job.reason is not None and job.reason.code == "nodes-closed"

    assert (await until_job(pool, waits.id, is_blocked)).state is State.QUEUED


async def test_node_shows_jobs_unfinished_at_maintenance(pool: Pool) -> None:
    _, at = await placed(pool, gpus=1, time_limit_s=60)
    _, other = await placed(pool, gpus=1)
    for name in ("n1", "n2"):
        await pool.nodes.maintain(ADMIN, name, window(pool, 3600))
    expected = {name: int(name in other) for name in ("n1", "n2")}
    assert {it.name: it.unfinished for it in pool.nodes.nodes(ADMIN)} == expected
    assert sum(it.jobs for it in pool.nodes.nodes(ADMIN)) == 2
    assert at


async def test_drained_node_takes_no_bench(pool: Pool) -> None:
    await pool.nodes.drain(ADMIN, "n1", NEW_DISK)
    held = await pool.benches.reserve(HUB, LeaseRequest("susan", "", "1", 1))
    assert held.gpus[0].startswith("n2/")
    await pool.benches.release(HUB, held.id)
    await pool.nodes.drain(ADMIN, "n2", NodeReason("no fan"))
    with pytest.raises(Unavailable):
        await pool.benches.reserve(HUB, LeaseRequest("susan", "", "2", 1))
    waiting = place(await pool.benches.wait_in_line(HUB, line("susan")))
    assert "n1 drains (new disk). n2 drains (no fan)." in waiting.reason.text
    await pool.nodes.open(ADMIN, "n2", NodeOpened())
    held = await pool.benches.reserve(HUB, LeaseRequest("susan", "", "3", 1))
    assert held.gpus[0].startswith("n2/")


async def test_node_drain_note_and_window_survive_restart(tmp_path: Path, clock: FakeClock) -> None:
    async with opened(two_machines(tmp_path, clock)) as pool:
        await pool.nodes.drain(ADMIN, "n1", NEW_DISK)
        await pool.nodes.note(ADMIN, "n1", NodeNote("fan is\nloud"))
        await pool.nodes.maintain(ADMIN, "n2", window(pool, 3600))
        before = pool.nodes.nodes(ADMIN)
    async with opened(two_machines(tmp_path, clock)) as pool:
        assert pool.nodes.nodes(ADMIN) == before
        assert node(pool, "n1").note == "fan is loud"
        assert (await placed(pool, gpus=1))[1] == set()
        await pool.nodes.open(ADMIN, "n1", NodeOpened())
        assert node(pool, "n1").note == "fan is loud"


async def test_invalid_node_actions_are_refused(pool: Pool) -> None:
    with pytest.raises(NotFound, match="The pool has no machine n3; it has n1, n2"):
        await pool.nodes.drain(ADMIN, "n3", NEW_DISK)
    with pytest.raises(Forbidden):
        await pool.nodes.drain(SUSAN, "n1", NEW_DISK)
    with pytest.raises(InvalidInput, match="short reason"):
        await pool.nodes.drain(ADMIN, "n1", NodeReason("  "))
    with pytest.raises(InvalidInput, match=r"would have ended at 20.* Use a later begin"):
        await pool.nodes.maintain(ADMIN, "n1", window(pool, -7200, lasts_s=60))
    assert [it.intake for it in pool.nodes.nodes(ADMIN)] == [NodeIntake.OPEN, NodeIntake.OPEN]
