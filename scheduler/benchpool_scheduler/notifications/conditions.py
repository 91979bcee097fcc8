"""What lasts, and somebody should know: a broken GPU, a budget that is used up.

A condition is told once for each time that it begins: its message's id has the instant in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from benchpool_scheduler.contract.notifications import NotificationEvent
from benchpool_scheduler.notifications.events import Message
from benchpool_scheduler.runtime import Device, DeviceState


@dataclass(frozen=True, slots=True)
class PoolCondition:
    """Something that lasts.

    Attributes:
        name: Tells it from all others. ``user``, ``project``: whom a budget is of.
    """

    name: str
    event: NotificationEvent
    text: str
    path: str = ""
    user: str = ""
    project: str = ""


def of_gpus(unusable: Iterable[Device]) -> Iterator[PoolCondition]:
    """Yield the broken ones; those that somebody else uses are no fault."""
    for gpu in unusable:
        if gpu.state is DeviceState.BROKEN:
            text = (
                f"GPU {gpu.index} of {gpu.node} is broken: {(gpu.note or 'no word').rstrip('.')}."
            )
            name = f"gpu-{gpu.uuid}"
            yield PoolCondition(name, NotificationEvent.GPU_BROKEN, text, "health")


def of_budgets(exhausted: Mapping[tuple[str, str], float], renewed: str) -> Iterator[PoolCondition]:
    """Yield the budgets that are used up.

    Args:
        exhausted: Their GPU-hours, by ``user`` or ``project`` and name. ``renewed``: the day on
            which the next month begins, as people read it.
    """
    for (kind, name), hours in exhausted.items():
        yield PoolCondition(
            f"budget-{kind}-{name}-{renewed}",
            NotificationEvent.BUDGET,
            f"The {kind} {name} has used up its {hours:g} GPU-hours of this month: new jobs of it "
            f"start from {renewed} on.",
            "mine",
            user=name if kind == "user" else "",
            project=name if kind == "project" else "",
        )


def lasting(
    now_there: Iterable[PoolCondition], since: Mapping[str, float], now: float
) -> dict[str, float]:
    """Return since when each of these lasts, by name; those that are over are not in it.

    >>> gone = {"gpu-1": 5.0, "gpu-2": 6.0}
    >>> there = [PoolCondition("gpu-2", NotificationEvent.GPU_BROKEN, "")]
    >>> lasting(there, gone, 9.0)
    {'gpu-2': 6.0}
    """
    return {one.name: since.get(one.name, now) for one in now_there}


def message(one: PoolCondition, since: float) -> Message:
    """Return what is told of a condition that began then."""
    return Message(id_of(one.name, since), one.event, since, one.text, one.path)


def id_of(name: str, since: float) -> str:
    """Return the id of what is told of a condition that began then.

    >>> id_of("gpu-1", 60.5)
    'gpu-1-60'
    """
    return f"{name}-{int(since)}"
