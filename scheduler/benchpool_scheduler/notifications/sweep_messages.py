"""What the owner of a sweep is told: its end, once. Of its trials only what needs somebody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from benchpool_scheduler.contract.notifications import NotificationEvent
from benchpool_scheduler.notifications.delivery_state import Subscription
from benchpool_scheduler.notifications.events import Message
from benchpool_scheduler.notifications.job_messages import oldest_sent
from benchpool_scheduler.phrases import count
from benchpool_scheduler.store.sweep_files import SweepRecord

OF_TRIALS = frozenset({NotificationEvent.HANGING})
"""What is told of a job that is a trial: the others are many, and its sweep tells their end."""


class KnownSweeps(Protocol):
    """The sweeps that there are."""

    def all(self) -> Iterator[SweepRecord]:
        """Return all sweeps."""
        ...

    def of_job(self, job: str) -> object | None:
        """Return as what a job runs in a sweep; None for a job that is no trial."""
        ...


def of_sweep(sweep: SweepRecord, wish: Subscription, now: float) -> Iterator[Message]:
    """Yield what the owner is to be told of a sweep by now."""
    ended = sweep.over
    if ended is None or ended < oldest_sent(wish, now):
        return
    if NotificationEvent.ENDED in wish.events:
        kind = "Array" if sweep.plan.array else "Sweep"
        failed = sum(one.ended == "failed" for one in sweep.trials)
        trials = count(len(sweep.trials), "task" if sweep.plan.array else "trial")
        text = f"{kind} {sweep.name} ({sweep.id[:8]}) is over: {trials}, {failed} failed."
        event, path = NotificationEvent.ENDED, f"sweeps/{sweep.id}"
        yield Message(f"{sweep.id}-over", event, ended, text, path)
