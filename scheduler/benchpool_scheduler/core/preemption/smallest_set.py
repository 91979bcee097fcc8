"""Smallest set of units that must go for a condition to hold (R17, R18).

Groups of units are released one after the other until the condition holds. Then comes *reprieve*,
as in kube-scheduler: each group is held again, and stays if the condition holds without it. No
group of the remaining set can be spared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit

Group = Sequence[PreemptionUnit]
"""Units that go together or stay together."""


def smallest_set(
    state: ClusterState,
    groups: Iterator[Group],
    enough: Callable[[], bool],
    reprieved: Callable[[list[Group]], Iterable[Group]],
    *,
    partly: bool = False,
) -> list[PreemptionUnit] | None:
    """Release the fewest units that suffice, or return None if all do not. The caller rolls back.

    Args:
        groups: Groups that may go, in order. The next is read after the last has gone.
        enough: Returns whether the released groups suffice.
        reprieved: Spares the released groups that are not needed and yields them, see
            ``latest_first``.
        partly: Keep the released units even if all of them do not suffice.
    """
    gone: list[Group] = []
    while not enough():
        group = next(groups, None)
        if group is None:
            if partly:
                break
            return None
        for unit in group:
            state.changes.release(unit)
        gone.append(group)
    stay = {unit for group in reprieved(gone) for unit in group}
    return [unit for group in gone for unit in group if unit not in stay]


def stays(state: ClusterState, group: Group, enough: Callable[[], bool]) -> bool:
    """Hold a group again if the rest suffices without it. Return whether it stays."""
    before = state.changes.savepoint()
    for unit in group:
        state.changes.hold(unit)
    if enough():
        return True
    state.changes.rollback(before)
    return False


def latest_first(state: ClusterState, gone: list[Group], enough: Callable[[], bool]) -> list[Group]:
    """Spare every group that is not needed, the last to go first. Return the spared groups."""
    return [group for group in reversed(gone) if stays(state, group, enough)]
