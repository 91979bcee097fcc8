"""Preemption for benches: GPUs that train must release to them (R3).

Over-quota jobs are preempted where a node keeps fewer free GPUs than benches need. Where an owner
waits for lent GPUs, every job that can be paused may be preempted. Over-quota jobs go first, then
jobs that have just started or run within quota. They took the GPUs on that condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchpool_scheduler.core.capacity.free_capacity import NodeCapacity
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit, order_of
from benchpool_scheduler.core.jobs.amounts import NOTHING, WHOLE_GPU, Amounts
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.preemption.candidates import VictimCandidates
from benchpool_scheduler.core.preemption.smallest_set import Group, smallest_set, stays

Choose = Callable[
    [NodeCapacity, ClusterState, VictimCandidates, list[PreemptionUnit]], PreemptionUnit | None
]


def make_way_for_benches(
    state: ClusterState, candidates: VictimCandidates
) -> tuple[list[PreemptionUnit], frozenset[int]]:
    """Preempt jobs where a node has fewer free GPUs than are kept for benches (R3).

    A partial result counts too: every freed GPU serves one more bench.

    Returns:
        The preempted units, and the ages of jobs on nodes where benches still lack GPUs. The next
        pass preempts these jobs as soon as their project is over quota. So they must not grow
        over quota (R20).
    """
    given: list[PreemptionUnit] = []
    lenient = VictimCandidates(state.units, candidates.now_s, protected=True)
    for node in state.keeping:
        given += _clear(state, candidates, node, _over_quota_on)
        if node.node.called:
            given += _clear(state, lenient, node, _pausable_on, called=True)
    return given, frozenset(_beside_short_benches(state, candidates))


def grows_over_quota(state: ClusterState, info: JobInfo) -> bool:
    """Return whether one more worker takes a project of the job over its guaranteed quota."""
    held, due = state.ledger.held, state.usage.guarantees
    return any(
        (quota := due[index][0]) is not None and held[index].gpus + info.request.gpus > quota
        for index in info.branch.path
    )


def _beside_short_benches(state: ClusterState, candidates: VictimCandidates) -> Iterator[int]:
    for node in state.keeping:
        if node.short_for_benches() > 0:
            for unit in candidates.on_node(node.node.name):
                if unit.amounts.gpus:
                    yield unit.info.age


def _clear(
    state: ClusterState,
    candidates: VictimCandidates,
    node: NodeCapacity,
    choose: Choose,
    *,
    called: bool = False,
) -> list[PreemptionUnit]:
    """Release units until enough is free, then spare the units that were not needed."""
    taken: list[PreemptionUnit] = []

    def enough() -> bool:
        return node.short_for_benches(called=called) <= 0

    def going() -> Iterator[Group]:
        while (unit := choose(node, state, candidates, taken)) is not None:
            # If the smallest gang of a job goes, all of its workers go.
            units = [unit, *(candidates.surplus_of(unit) if unit.is_gang else ())]
            group = [one for one in units if one not in taken]
            taken.extend(group)
            yield group

    def reprieved(gone: list[Group]) -> Iterator[Group]:
        stopped: set[int] = set()
        for group in reversed(gone):
            if group[0].info.age not in stopped and stays(state, group, enough):
                yield group
            else:
                stopped.update(one.info.age for one in group if one.is_gang)
                given.extend(group)

    given: list[PreemptionUnit] = []
    smallest_set(state, going(), enough, reprieved, partly=True)
    for unit in given:
        state.changes.give(unit)
    return given


def _over_quota_on(
    node: NodeCapacity,
    state: ClusterState,
    candidates: VictimCandidates,
    gone: list[PreemptionUnit],
) -> PreemptionUnit | None:
    """Return the unit to go first: the worst of the project furthest above its due, or None."""
    one_gpu = Amounts(gpus=WHOLE_GPU)
    found: list[tuple[tuple[object, ...], PreemptionUnit]] = []
    for unit in candidates.on_node(node.node.name):
        branch = unit.info.branch
        if not unit.amounts.gpus or unit in gone:
            continue
        if any(state.usage.above_quota(i, one_gpu) for i in branch.path):
            found.append((_order(state, candidates, unit), unit))
    return min(found, key=lambda entry: entry[0])[1] if found else None


def _pausable_on(
    node: NodeCapacity,
    state: ClusterState,
    candidates: VictimCandidates,
    gone: list[PreemptionUnit],
) -> PreemptionUnit | None:
    """Return the first unit to go of all that can be paused, over-quota jobs first, or None."""
    if (over := _over_quota_on(node, state, candidates, gone)) is not None:
        return over
    found = [
        (_order(state, candidates, unit), unit)
        for unit in candidates.on_node(node.node.name)
        if unit.amounts.gpus and unit not in gone
    ]
    return min(found, key=lambda entry: entry[0])[1] if found else None


def _order(
    state: ClusterState, candidates: VictimCandidates, unit: PreemptionUnit
) -> tuple[object, ...]:
    branch = unit.info.branch
    due = tuple(-state.usage.dominant(i, NOTHING) for i in branch.path)
    return due, -branch.index, order_of(unit, candidates.lost(unit), -len(unit.workers))
