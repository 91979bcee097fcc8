"""A cluster state updated by events decides like a state rebuilt from the same facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Plan,
    ReasonCode,
    Snapshot,
    WaitReason,
)
from benchpool_scheduler.core.plan import decide, decide_on
from benchpool_scheduler.simulation.passes import after
from benchpool_scheduler.simulation.written import as_case
from benchpool_support.examples import examples
from benchpool_support.leaving import gone, under_way
from benchpool_support.reference.holdings import leaves
from benchpool_support.wide_snapshots import EVERYTHING, a_job, queueing, wide_snapshots

CHANGES: Mapping[str, Callable[[Node, int], tuple[Node, ...]]] = {
    "loses a GPU": lambda node, born: (replace(node, gpus=node.gpus[1:]),),
    "has a new GPU": lambda node, born: (
        replace(node, gpus=(*node.gpus, GpuId(f"{node.name}/new{born}"))),
    ),
    "has fewer cores": lambda node, born: (replace(node, cpus=4.0),),
    "has less memory": lambda node, born: (replace(node, memory_gib=8.0),),
    "has no bound": lambda node, born: (replace(node, cpus=None, memory_gib=None),),
    "is ready or not": lambda node, born: (replace(node, ready=not node.ready),),
    "stands elsewhere": lambda node, born: (
        replace(node, labels={level: f"{level}{born % 2}" for level in node.labels}),
    ),
    "has another model": lambda node, born: (replace(node, gpu_model="A100"),),
    "is taken away": lambda node, born: (),
    "gets a neighbour": lambda node, born: (
        node,
        replace(
            node,
            name=NodeName(f"new{born}"),
            gpus=tuple(GpuId(f"new{born}/{i}") for i in range(4)),
            ready=True,
        ),
    ),
}
"""Possible changes of a machine; the number makes new names unique."""


class KeptBoard(RuleBasedStateMachine):
    """Events of a pool in any order; ``jobs`` are the facts, by age."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = Snapshot((), (), ())
        self.state = ClusterState.of(self.pool)
        self.born = 0

    @initialize(pool=wide_snapshots())
    def begin(self, pool: Snapshot) -> None:
        self.pool = pool
        self.state = ClusterState.of(pool)

    @rule(data=st.data())
    def a_job_is_submitted(self, data: st.DataObject) -> None:
        self.born += 1
        pool = self.pool
        job = data.draw(a_job(f"new{self.born}", leaves(pool), pool.topology, EVERYTHING))
        names = [node.name for node in pool.nodes]
        if names and data.draw(st.integers(0, 4)) == 0:
            some = data.draw(st.frozensets(st.sampled_from(names)))
            job = replace(job, only=some) if self.born % 2 else replace(job, barred=some)
        self._becomes((*pool.jobs, replace(queueing(job), as_of_s=pool.now_s)))

    @precondition(lambda self: self.pool.jobs)
    @rule(data=st.data())
    def a_job_ends_or_is_cancelled(self, data: st.DataObject) -> None:
        ended = data.draw(st.sampled_from([job.id for job in self.pool.jobs]))
        self._becomes(tuple(job for job in self.pool.jobs if job.id != ended))

    @precondition(lambda self: any(job.held for job in self.pool.jobs))
    @rule(data=st.data())
    def a_job_saves_its_work(self, data: st.DataObject) -> None:
        saved = data.draw(st.sampled_from([job.id for job in self.pool.jobs if job.held]))
        now = self.pool.now_s
        self._becomes(
            tuple(
                replace(job, ran_s=job.ran_at(now), since_checkpoint_s=0.0, as_of_s=now)
                if job.id == saved
                else job
                for job in self.pool.jobs
            )
        )

    @precondition(lambda self: self.pool.jobs)
    @rule(data=st.data())
    def a_job_is_paused_and_resumed_as_the_youngest(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([job.id for job in self.pool.jobs]))
        job = next(job for job in self.pool.jobs if job.id == name)
        others = tuple(other for other in self.pool.jobs if other.id != name)
        self._becomes(others)
        again = replace(queueing(job), is_nominated=False, nominated=(), as_of_s=self.pool.now_s)
        self._becomes((*others, again))

    @precondition(lambda self: self.pool.nodes)
    @rule(data=st.data(), change=st.sampled_from(sorted(CHANGES)))
    def a_machine_changes(self, data: st.DataObject, change: str) -> None:
        number = data.draw(st.integers(0, len(self.pool.nodes) - 1))
        self.born += 1
        machines = CHANGES[change](self.pool.nodes[number], self.born)
        nodes = (*self.pool.nodes[:number], *machines, *self.pool.nodes[number + 1 :])
        self.pool = replace(self.pool, nodes=nodes)
        if len(machines) != 1 or not self.state.renew(machines):
            self.state.rehouse(nodes)

    @rule(seconds=st.sampled_from([1.0, 31.0, 3600.0]))
    def time_passes(self, seconds: float) -> None:
        self.pool = replace(self.pool, now_s=self.pool.now_s + seconds)

    @rule()
    def the_plan_takes_effect_at_once(self) -> None:
        self._follows(after(self.pool, self._plan()))

    @rule()
    def the_plan_is_carried_out(self) -> None:
        self._follows(under_way(self.pool, self._plan()))

    @rule()
    def those_who_were_leaving_have_left(self) -> None:
        self._follows(gone(self.pool))

    @invariant()
    def the_kept_board_plans_as_a_fresh_one(self) -> None:
        kept, fresh = self._plan(), decide(self.pool)
        note(as_case(self.pool))
        assert kept.commands == fresh.commands
        assert _reasons(kept) == _reasons(fresh)
        assert kept.shares == fresh.shares
        assert kept.over_quota == fresh.over_quota

    @invariant()
    def a_pass_leaves_the_board_as_it_was(self) -> None:
        assert self._plan() == self._plan()

    @invariant()
    def reasons_may_be_left_out(self) -> None:
        without = decide_on(self.state, self.pool.now_s, explain=False)
        assert without.commands == self._plan().commands

    def _plan(self) -> Plan:
        return decide_on(self.state, self.pool.now_s)

    def _follows(self, later: Snapshot) -> None:
        """Set on every changed job the time at which its facts are true."""
        before = {job.id: job for job in self.pool.jobs}
        self._becomes(
            tuple(
                job if job == before[job.id] else self._as_of_now(before[job.id], job)
                for job in later.jobs
            )
        )

    def _as_of_now(self, before: JobFacts, job: JobFacts) -> JobFacts:
        now = self.pool.now_s
        started = not before.held or job.activity is Activity.QUEUED
        saved = before.since_checkpoint_s
        return replace(
            job,
            as_of_s=now,
            ran_s=0.0 if started else before.ran_at(now),
            since_checkpoint_s=None if started or saved is None else before.unsaved_at(now),
            waits_s=0.0,
        )

    def _becomes(self, jobs: tuple[JobFacts, ...]) -> None:
        """Report only the changed jobs to the cluster state."""
        before: dict[JobId, JobFacts] = {job.id: job for job in self.pool.jobs}
        for name in before.keys() - {job.id for job in jobs}:
            self.state.drop(name)
        for job in jobs:
            if before.get(job.id) != job:
                self.state.put(job)
        self.pool = replace(self.pool, jobs=jobs)


def _reasons(plan: Plan) -> dict[JobId, WaitReason | ReasonCode]:
    """Return the reasons, without the named job where any of several protected jobs suffices."""
    protected = ReasonCode.VICTIMS_PROTECTED
    return {
        job: reason.code if reason.code is protected else reason
        for job, reason in plan.reasons.items()
    }


TestKeptBoard = KeptBoard.TestCase
TestKeptBoard.settings = settings(
    max_examples=examples(60), stateful_step_count=12, suppress_health_check=list(HealthCheck)
)
