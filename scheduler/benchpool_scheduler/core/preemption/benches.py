"""Room for benches: what train must give back to them (R3).

Over-quota work gives way where a node keeps fewer free GPUs than benches need. Where an owner waits
for GPUs that were lent, everything that can be paused gives way: over-quota work first, then what
has just started or runs within quota. It took them on that condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchpool_scheduler.core.capacity.free_capacity import NodeCapacity
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit, order_of
from benchpool_scheduler.core.jobs.amounts import NOTHING, WHOLE_GPU, Amounts
from benchpool_scheduler.core.preemption.candidates import VictimCandidates
from benchpool_scheduler.core.preemption.smallest_set import Group, smallest_set, stays

Choose = Callable[
    [NodeCapacity, ClusterState, VictimCandidates, list[PreemptionUnit]], PreemptionUnit | None
]


def make_way_for_benches(state: ClusterState, candidates: VictimCandidates) -> list[PreemptionUnit]:
    """Let work go where a node has fewer free GPUs than are kept for benches (R3).

    Takes what is there even when it is not enough: every GPU is one bench more.
    """
    given: list[PreemptionUnit] = []
    lenient = VictimCandidates(state.units, candidates.now_s, protected=True)
    for node in state.keeping:
        given += _clear(state, candidates, node, _over_quota_on)
        if node.node.called:
            given += _clear(state, lenient, node, _pausable_on, called=True)
    return given


def _clear(
    state: ClusterState,
    candidates: VictimCandidates,
    node: NodeCapacity,
    choose: Choose,
    *,
    called: bool = False,
) -> list[PreemptionUnit]:
    """Let units go until nothing is short, then keep those that were not needed after all."""
    taken: list[PreemptionUnit] = []

    def enough() -> bool:
        return node.short_for_benches(called=called) <= 0

    def going() -> Iterator[Group]:
        while (unit := choose(node, state, candidates, taken)) is not None:
            # With the smallest gang of a job goes all that it has.
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
    """Return what should go first: the worst unit of the project that is most above its due."""
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
    """Return what should go first of all that can be paused, over-quota work before any other."""
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
