"""Invariants hold after any sequence of events, and no job or GPU is lost or duplicated."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from benchpool_scheduler.contract import (
    GpuState,
    JobSubmission,
    LeaseRequest,
    LineRequest,
    State,
)
from benchpool_scheduler.contract.changes import JobChange
from benchpool_scheduler.core.model import JobId, Plan, Start
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.errors import BenchpoolError, Refused, Unavailable
from benchpool_scheduler.runtime import DeviceState, EndedBy, NodeFacts, WorkerId, WorkerProgress
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.service.cluster_state import snapshots
from benchpool_scheduler.service.cluster_state.state_cache import StateCache
from benchpool_scheduler.service.ledger.counters import JobCounters
from benchpool_scheduler.service.views.gpu_states import GpuStates
from benchpool_support.clocks import FakeClock
from benchpool_support.examples import examples
from benchpool_support.histories import CONFIGURATION, CONFIGURATIONS, GPUS, MACHINE, QUOTAS
from benchpool_support.pools import ADMIN, HUB, make_pool, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.waiting import PATIENCE_S

pytestmark = pytest.mark.slow

T = TypeVar("T")
USERS = st.sampled_from(["susan", "joe"])
PLACES = st.integers(0, 1000)
"""Positions in lists whose length is unknown when they are drawn."""
ENDED = {State.SUCCEEDED, State.FAILED, State.CANCELLED}


def one_of(these: Sequence[T], place: int) -> T:
    """Return an item by its drawn position, independent of the pool's state and task order."""
    return these[place % len(these)]


def seen(plan: Plan) -> object:
    """Return a plan without costs, whose last digits depend on when times were taken."""
    commands = [
        (c.job, c.workers, c.after if isinstance(c, Start) else (c.claimant, c.rule))
        for c in plan.commands
    ]
    codes = {job: reason.code for job, reason in plan.reasons.items()}
    return commands, codes, plan.shares, plan.over_quota


def timeless(plan: Plan) -> Plan:
    """Return a plan without its wake time, which may have passed in a rebuilt state."""
    return replace(plan, wake_s=None)


class PoolHistory(RuleBasedStateMachine):
    """State machine that runs a pool under users, workers, crashes and time, and checks it."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FakeClock()
        self.runtime = ScriptedRuntime(devices(GPUS))
        self.accepted: dict[str, str] = {}
        self.final: dict[str, State] = {}
        self.spawns = 0
        self.keys = 0
        self.ids = itertools.count(1)
        self.lent = False
        self.pool: Pool

    def wait(self, work: Any) -> Any:
        async def bounded() -> Any:
            async with asyncio.timeout(PATIENCE_S):
                return await work

        return self.loop.run_until_complete(bounded())

    @initialize()
    def open(self) -> None:
        self.pool = make_pool(
            Path(self.folder.name),
            configuration=CONFIGURATION,
            runtime=self.runtime,
            clock=self.clock,
            new_id=lambda: f"{next(self.ids):a>26}",
        )
        self.wait(self.pool.open())
        self.settle()

    def settle(self) -> None:
        """Process events, then make passes until one changes nothing (R20)."""
        self.wait(self._settle())

    async def _settle(self) -> None:
        engine = self.pool
        for _ in range(20):
            await asyncio.sleep(0)
            while not engine.watcher.idle or engine.actions.busy:
                await asyncio.sleep(0)
            before = [(job.id, job.state, job.stop_request) for job in engine.ledger.live()]
            await engine.passes.make()
            await engine.actions.finish()
            after = [(job.id, job.state, job.stop_request) for job in engine.ledger.live()]
            if before == after and engine.watcher.idle:
                return
        raise AssertionError("passes do not come to rest")

    # ------------------------------------------------------------------ users

    @rule(
        user=USERS,
        gpus=st.integers(1, 4),
        workers=st.integers(1, 3),
        spare=st.integers(0, 2),
        preemptible=st.booleans(),
        priority=st.sampled_from([50, 60]),
    )
    def submit(
        self, user: str, gpus: int, workers: int, spare: int, preemptible: bool, priority: int
    ) -> None:
        self.keys += 1
        least = max(1, workers - spare)
        job = sleeper(
            gpus=gpus,
            workers=workers,
            min_workers=least,
            preemptible=preemptible,
            priority=priority,
            key=str(self.keys),
        )
        try:
            accepted = self.wait(self.pool.jobs.submit(Caller(user), job))
        except BenchpoolError:
            assert gpus * least > 2 or not preemptible
            return
        self.accepted[accepted.id] = str(self.keys)
        self.repeat(user, job, accepted.id)
        self.settle()

    def repeat(self, user: str, job: JobSubmission, known: str) -> None:
        again, new = self.wait(self.pool.jobs.submit_once(Caller(user), job))
        assert (again.id, new) == (known, False)

    @rule(place=PLACES, verb=st.sampled_from(["pause", "resume", "cancel"]))
    def command(self, place: int, verb: str) -> None:
        jobs = self.pool.jobs.select(ADMIN, all=True)
        if not jobs:
            return
        job = one_of(jobs, place)
        try:
            self.wait(self.pool.jobs.act(ADMIN, job.id, verb))
        except Refused:
            assert job.state in ENDED
        self.settle()

    @rule(place=PLACES, priority=st.sampled_from([40, 70]), workers=st.integers(1, 4))
    def change(self, place: int, priority: int, workers: int) -> None:
        jobs = self.pool.jobs.select(ADMIN, all=True)
        if not jobs:
            return
        job = one_of(jobs, place)
        wanted = JobChange(priority=priority, workers=workers)
        try:
            changed = self.wait(self.pool.jobs.act(ADMIN, job.id, "change", wanted))
        except BenchpoolError:
            now = self.pool.jobs.detail(ADMIN, job.id).job
            assert (now.priority, now.workers) == (job.priority, job.workers)
        else:
            assert (changed.priority, changed.workers) == (priority, workers)
        self.settle()

    @rule(user=USERS, gpus=st.integers(1, 3))
    def reserve(self, user: str, gpus: int) -> None:
        held = sum(len(lease.gpus) for lease in self.pool.benches.leases(ADMIN, user))
        self.spawns += 1
        request = LeaseRequest(user=user, server="s", spawn=str(self.spawns), gpus=gpus)
        try:
            lease = self.wait(self.pool.benches.reserve(HUB, request))
        except Refused:
            assert held + gpus > QUOTAS[user]
        except Unavailable:
            unusable = any(gpu.state is not DeviceState.USABLE for gpu in self.runtime.gpus)
            assert unusable or self.lent or self.pool.observed.now.called
        else:
            assert held + len(lease.gpus) <= QUOTAS[user]
        self.settle()

    @rule(user=USERS, gpus=st.integers(1, 2), server=st.sampled_from(["a", "b"]))
    def wait_in_line(self, user: str, gpus: int, server: str) -> None:
        self.spawns += 1
        wanted = LeaseRequest(user=user, server=server, spawn=str(self.spawns), gpus=gpus)
        try:
            answer = self.wait(self.pool.benches.wait_in_line(HUB, LineRequest(lease=wanted)))
        except Refused:
            held = sum(len(lease.gpus) for lease in self.pool.benches.leases(ADMIN, user))
            assert held + gpus > QUOTAS[user]
        else:
            assert (answer.lease is None) != (answer.place is None)
        self.settle()

    @rule(place=PLACES)
    def release(self, place: int) -> None:
        leases = self.pool.benches.leases(ADMIN)
        if leases:
            self.wait(self.pool.benches.release(HUB, one_of(leases, place).id))
            self.settle()

    # ------------------------------------------------------------------ workers, time, crashes

    @rule(
        place=PLACES,
        end=st.sampled_from(
            [
                (0, EndedBy.ITSELF),
                (1, EndedBy.ITSELF),
                (143, EndedBy.NOTICE),
                (None, EndedBy.LOST),
                (None, EndedBy.NOT_TAKEN),
            ]
        ),
    )
    def worker_ends(self, place: int, end: tuple[int | None, EndedBy]) -> None:
        alive: list[WorkerId] = sorted(self.runtime.alive)
        if alive:
            worker = one_of(alive, place)
            self.runtime.end(worker, *end, at=self.clock.now())
            self.settle()

    @rule(seconds=st.integers(1, 4000))
    def time_passes(self, seconds: int) -> None:
        self.clock.pass_s(seconds)
        self.pool.housekeeping.count_use()

    @rule(place=PLACES)
    def worker_saves(self, place: int) -> None:
        alive: list[WorkerId] = sorted(self.runtime.alive)
        if alive:
            worker, now = one_of(alive, place), self.clock.now()
            self.runtime.report(WorkerProgress(worker, now, 0.5, None, checkpoint_at=now))
            self.settle()

    @rule(gpu=st.integers(0, GPUS - 1), state=st.sampled_from(DeviceState))
    def gpu_changes(self, gpu: int, state: DeviceState) -> None:
        self.runtime.mark(f"GPU-{gpu}", state)
        self.wait(self.pool.housekeeping.look())
        self.settle()

    @rule(facts=st.sampled_from(MACHINE))
    def machine_changes(self, facts: NodeFacts) -> None:
        self.runtime.facts = (facts,)
        self.wait(self.pool.housekeeping.look())
        self.settle()

    @rule(text=st.sampled_from(CONFIGURATIONS))
    def configuration_changes(self, text: str) -> None:
        self.wait(self.pool.configuration.apply(ADMIN, text))
        self.lent = self.lent or self.pool.observed.now.configuration.build.lend_idle
        self.settle()

    @rule()
    def service_restarts(self) -> None:
        self.wait(self.pool.close())
        before = self.runtime
        self.runtime = ScriptedRuntime(devices(GPUS))
        self.runtime.facts = before.facts
        self.runtime.alive = set(before.alive)
        self.runtime.launched = dict(before.launched)
        self.open()

    # ------------------------------------------------------------------ invariants

    @invariant()
    def nothing_is_lost_or_undone(self) -> None:
        if not hasattr(self, "pool"):
            return
        known = {job.id: job for job in self.pool.jobs.select(ADMIN, all=True)}
        assert set(known) == set(self.accepted)
        for job, state in self.final.items():
            assert known[job].state is state
        self.final.update({j.id: j.state for j in known.values() if j.state in ENDED})

    @invariant()
    def no_gpu_is_given_twice(self) -> None:
        if not hasattr(self, "pool"):
            return
        held = [gpu for lease in self.pool.benches.leases(ADMIN) for gpu in lease.gpus]
        held += [g for worker in self.runtime.alive for g in self.runtime.launched[worker].gpus]
        assert len(held) == len(set(held))
        stuck = {"I4"}  # time passes without workers obeying their notices
        assert set(self.pool.figures.read().breaches) <= stuck

    @invariant()
    def every_waiting_job_has_its_reason_and_benches_their_room(self) -> None:
        if not hasattr(self, "pool"):
            return
        for job in self.pool.jobs.select(ADMIN, all=True, state=State.QUEUED):
            assert job.reason is not None
            assert job.reason.code != "next-pass"
        leased = sum(len(lease.gpus) for lease in self.pool.benches.leases(ADMIN))
        in_jobs = sum(len(self.runtime.launched[w].gpus) for w in self.runtime.alive)
        assert leased + in_jobs <= GPUS
        alive = [worker for worker in self.runtime.alive if not self.lent or self.is_firm(worker)]
        in_jobs = sum(len(self.runtime.launched[w].gpus) for w in alive)
        assert in_jobs <= GPUS - sum(QUOTAS.values())

    def is_firm(self, worker: WorkerId) -> bool:
        return not self.pool.jobs.detail(ADMIN, worker.job).job.preemptible

    @invariant()
    def benches_stay_within_the_build_quota(self) -> None:
        if not hasattr(self, "pool"):
            return
        for user, quota in QUOTAS.items():
            assert sum(len(lease.gpus) for lease in self.pool.benches.leases(ADMIN, user)) <= quota

    @invariant()
    def kept_counts_equal_a_count_over_all_records(self) -> None:
        if not hasattr(self, "pool"):
            return
        engine = self.pool
        kept = engine.ledger.counters
        fresh = JobCounters()
        for job in engine.ledger.live():
            fresh.see(job, engine.ledger.attempt(job.id, job.attempt))
        for name in ("states", "by_state", "held", "held_of", "holders", "doubled", "inconsistent"):
            assert getattr(kept, name) == getattr(fresh, name), name
        assert set(kept.nominated) == set(fresh.nominated)
        assert set(kept.stopping) == set(fresh.stopping)
        shown = {gpu.uuid: gpu.state for gpu in self.pool.views.status(ADMIN).gpus}
        recounted = GpuStates(engine.ledger, engine.observed)
        assert [*engine.views.gpu_states.rows()] == [*recounted.rows()]
        assert shown == recounted.states
        for state in GpuState:
            assert engine.views.counts()[state] == recounted.counts[state]

    @invariant()
    def squares_and_tags_name_the_gpus_that_the_plan_names(self) -> None:
        if not hasattr(self, "pool"):
            return
        over_quota = self.pool.observed.now.latest_pass.over_quota
        shown = self.pool.views.status(ADMIN).gpus
        for job in self.pool.jobs.select(ADMIN):
            mine = [gpu for gpu in shown if gpu.job == job.id]
            over = {gpu.uuid for gpu in mine if gpu.state is GpuState.TRAIN_OVER_QUOTA}
            assert job.over_quota == bool(over)
            assert over == over_quota.get(JobId(job.id), frozenset())

    @invariant()
    def the_kept_board_decides_as_one_made_afresh(self) -> None:
        if not hasattr(self, "pool"):
            return
        self.wait(self._compare_boards())

    async def _compare_boards(self) -> None:
        engine = self.pool
        # A pass may be running in its thread; it holds the lock while it reads the state.
        async with engine.ledger.lock:
            kept = engine.state_cache.decide(engine.state_cache.take_input())
            afresh = StateCache(engine.ledger, engine.observed)
            afresh.touch(engine.ledger.job_index.live)
            now = engine.observed.settings.clock.now()
            assert timeless(kept) == timeless(afresh.decide(afresh.take_input()))
            assert seen(kept) == seen(
                decide(snapshots.snapshot(engine.ledger, engine.observed.now, now))
            )
            assert engine.state_cache.quarantined == {}

    def teardown(self) -> None:
        if hasattr(self, "pool"):
            self.wait(self.pool.close())
        self.loop.close()
        self.folder.cleanup()


TestPoolHistory = PoolHistory.TestCase
TestPoolHistory.settings = settings(
    max_examples=examples(30),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
