"""Reprieve at the end of a pass: victims that no attempt needs any more are spared (R18).

Attempts are served one after the other. An early attempt may take a victim that a later one makes
superfluous, since the later victim frees more than needed. At the end of the pass every victim is
checked again, the last first. It stays if its claimants fit on other releasing GPUs. A victim that
cannot stay, but fits on GPUs that are still free, resumes there.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchpool_scheduler.core.capacity.assignment import Assignment, JobAssignment, departures
from benchpool_scheduler.core.capacity.placement import find
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit
from benchpool_scheduler.core.jobs.amounts import NOTHING, WHOLE_GPU
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import JobId


def reprieve(state: ClusterState) -> Iterator[PreemptionUnit]:
    """Spare victims that the attempts do not need, and yield them."""
    for unit in reversed([*state.changes.given]):
        if unit.fresh or unit.info.job.id in state.changes.assigned:
            continue
        if unit.amounts.gpus > state.capacity.unclaimed() * WHOLE_GPU or _stopped(state, unit):
            continue
        leaving = set(unit.departures)
        claimants = [
            entry
            for entry in state.changes.assigned.values()
            if any(not leaving.isdisjoint(part.after) for part in entry.parts)
        ]
        rightful = all(_indifferent(state, entry, unit.info) for entry in claimants)
        if rightful and _placed_without(state, unit, claimants):
            yield unit


def _stopped(state: ClusterState, unit: PreemptionUnit) -> bool:
    """Return whether this is surplus of a stopped job, of which all units go."""
    return not unit.is_gang and any(c.is_gang and c.info is unit.info for c in state.changes.given)


def _indifferent(state: ClusterState, entry: JobAssignment, victim: JobInfo) -> bool:
    """Return whether the attempt stays as entitled without this victim (R15).

    A victim on the claimant's own side may entitle it to the rest.
    """
    claimant = entry.info
    if claimant.branch.path[0] != victim.branch.path[0]:
        return True
    releasing = [state.jobs[one.job] for part in entry.parts for one in part.after]
    return all(info.branch.index == claimant.branch.index for info in releasing)


def _placed_without(
    state: ClusterState, unit: PreemptionUnit, claimants: list[JobAssignment]
) -> bool:
    """Place the claimants again with the unit kept, or change nothing and return False."""
    before = state.changes.savepoint()
    for entry in claimants:
        for part in entry.parts:
            for worker in part.workers:
                state.capacity.unassign(entry.info, worker)
    state.changes.reprieve(unit)
    placed = all(_placed_again(state, entry, unit) for entry in claimants)
    if placed and not _short_for_benches(state, unit):
        return True
    state.changes.rollback(before)
    return False


def _short_for_benches(state: ClusterState, unit: PreemptionUnit) -> bool:
    """Return whether benches lack GPUs on the nodes of the unit (R3)."""
    nodes = {worker.node for worker in unit.workers} & state.capacity.by_name.keys()
    return any(state.capacity.by_name[name].short_for_benches() > 0 for name in nodes)


def _placed_again(state: ClusterState, entry: JobAssignment, spared: PreemptionUnit) -> bool:
    """Place a claimant again, with one unit less that leaves. Return whether that succeeded."""
    info = entry.info
    if state.ledger.over_limit(info, NOTHING, releasing=True) is not None:
        return False
    parts: list[Assignment] = []
    for part in entry.parts:
        places = find(info, len(part.workers), state.capacity, releasing=bool(part.after))
        if places is None:
            return False
        assignment = state.capacity.take(info, places)
        still = (one for one in part.after if one not in spared.departures)
        parts.append(assignment.behind(still))
    state.changes.reassign(info, tuple(parts))
    return True


def relocate(state: ClusterState) -> Iterator[tuple[JobInfo, Assignment]]:
    """Yield the stopped jobs that fit on GPUs that are still free (R18)."""
    lost: dict[JobId, int] = {}
    for unit in state.changes.given:
        if not unit.fresh:
            lost[unit.info.job.id] = lost.get(unit.info.job.id, 0) + len(unit.workers)
    for job, workers in lost.items():
        info = state.jobs[job]
        if (
            job in state.changes.assigned
            or workers < len(info.job.held)
            or not info.job.checkpoints
        ):
            continue
        wanted = info.request.times(workers)
        if (
            wanted.gpus > state.capacity.free(info.requirements) * WHOLE_GPU
            and not info.requirements.part
        ):
            continue
        if state.ledger.over_limit(info, wanted, releasing=True) is not None:
            continue
        everywhere = state.capacity.every
        places = find(info, workers, state.capacity, releasing=False, among=everywhere)
        if places is not None:
            yield info, state.capacity.take(info, places).behind(departures(info, info.job.held))
