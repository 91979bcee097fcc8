"""Lasting conditions to notify about: a broken GPU, the use of a budget, an idle bench.

A condition is sent once for each time that it begins: the ID of its message contains the instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from benchpool_scheduler.contract.notifications import NotificationEvent
from benchpool_scheduler.core.fairness.gpu_hours import NEARLY, HourAccount
from benchpool_scheduler.core.fairness.hour_standing import HourStanding
from benchpool_scheduler.notifications.events import Message
from benchpool_scheduler.runtime import Device, DeviceState


@dataclass(frozen=True, slots=True)
class PoolCondition:
    """A lasting condition of the pool.

    Attributes:
        name: Unique name. ``user``, ``project``: the affected user or project.
    """

    name: str
    event: NotificationEvent
    text: str
    path: str = ""
    user: str = ""
    project: str = ""


def of_gpus(unusable: Iterable[Device]) -> Iterator[PoolCondition]:
    """Yield the broken GPUs; foreign use is no fault."""
    for gpu in unusable:
        if gpu.state is DeviceState.BROKEN:
            text = (
                f"GPU {gpu.index} of {gpu.node} is broken: {(gpu.note or 'unknown').rstrip('.')}."
            )
            name = f"gpu-{gpu.uuid}"
            yield PoolCondition(name, NotificationEvent.GPU_BROKEN, text, "health")


def of_budgets(standing: HourStanding, renewed: str) -> Iterator[PoolCondition]:
    """Yield the budgets that are used up, nearly used up, or past their soft limit.

    Args:
        renewed: The first day of the next month, as text.
    """
    for it in standing.exhausted.values():
        yield _of_budget(
            "budget",
            it,
            renewed,
            f"has used up its {it.budget.hard or 0.0:g} GPU-hours of this month. Its new jobs "
            f"start from {renewed} on.",
        )
    for it in standing.nearly.values():
        yield _of_budget(
            "budget-nearly",
            it,
            renewed,
            f"has used {NEARLY:.0%} of its {it.budget.hard or 0.0:g} GPU-hours of this month. When "
            f"all are used, its new jobs start from {renewed} on. Running jobs continue.",
        )
    for it in standing.past_soft.values():
        turn = (
            "its share of the GPUs beyond guaranteed quotas is smaller"
            if it.kind == "project"
            else "jobs of others in the same project go first"
        )
        yield _of_budget(
            "budget-soft",
            it,
            renewed,
            f"has passed its soft limit of {it.budget.soft or 0.0:g} GPU-hours of this month. "
            f"Until {renewed}, {turn}.",
        )


def _of_budget(what: str, of: HourAccount, renewed: str, text: str) -> PoolCondition:
    return PoolCondition(
        f"{what}-{of.kind}-{of.name}-{renewed}",
        NotificationEvent.BUDGET,
        f"The {of.kind} {of.name} {text}",
        "mine",
        user=of.name if of.kind == "user" else "",
        project=of.name if of.kind == "project" else "",
    )


def of_idle_benches(texts: Mapping[tuple[str, str], str]) -> Iterator[PoolCondition]:
    """Yield the conditions of idle benches for their owners.

    Args:
        texts: The sentence by owner and a name that is unique for each step of the escalation.
    """
    for (user, name), text in texts.items():
        yield PoolCondition(name, NotificationEvent.IDLE_BENCH, text, "mine", user=user)


def lasting(
    now_there: Iterable[PoolCondition], since: Mapping[str, float], now: float
) -> dict[str, float]:
    """Return the begin of each lasting condition by name; ended conditions are omitted.

    >>> gone = {"gpu-1": 5.0, "gpu-2": 6.0}
    >>> there = [PoolCondition("gpu-2", NotificationEvent.GPU_BROKEN, "")]
    >>> lasting(there, gone, 9.0)
    {'gpu-2': 6.0}
    """
    return {one.name: since.get(one.name, now) for one in now_there}


def message(one: PoolCondition, since: float) -> Message:
    """Return the message about a condition that began at ``since``."""
    return Message(id_of(one.name, since), one.event, since, one.text, one.path)


def id_of(name: str, since: float) -> str:
    """Return the ID of the message about a condition that began at ``since``.

    >>> id_of("gpu-1", 60.5)
    'gpu-1-60'
    """
    return f"{name}-{int(since)}"
