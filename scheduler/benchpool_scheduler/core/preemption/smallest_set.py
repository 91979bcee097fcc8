"""Who must give way so that something is enough, and nobody beyond that (R17, R18).

Groups of units are released one after the other until it is enough. Then comes *reprieve*, as in
kube-scheduler: each is held again, and stays if it is still enough without it. What is left is a
set of which nothing can be spared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit

Group = Sequence[PreemptionUnit]
"""Units that go together, or stay together."""


def smallest_set(
    state: ClusterState,
    groups: Iterator[Group],
    enough: Callable[[], bool],
    reprieved: Callable[[list[Group]], Iterable[Group]],
    *,
    partly: bool = False,
) -> list[PreemptionUnit] | None:
    """Release as little as is enough; None where all is not enough, then the caller rolls back.

    Args:
        groups: What may go, the first to go first; the next is asked for after the last has gone.
        enough: Tells whether what has gone is enough.
        reprieved: Lets those of the groups that have gone stay which are not needed, see
            ``latest_first``, and yields them.
        partly: Take what there is where all of it is not enough.
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
    """Hold a group again if it is enough without it; tell whether it stays."""
    before = state.changes.savepoint()
    for unit in group:
        state.changes.hold(unit)
    if enough():
        return True
    state.changes.rollback(before)
    return False


def latest_first(state: ClusterState, gone: list[Group], enough: Callable[[], bool]) -> list[Group]:
    """Let every group stay that is not needed, the last to go first; return those."""
    return [group for group in reversed(gone) if stays(state, group, enough)]
