"""Messages about a sweep for its owner: its end, once, and trials that need action."""

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
"""Events that are sent for trials; all other trial events are covered by the sweep's end."""


class KnownSweeps(Protocol):
    """Interface to all sweeps."""

    def all(self) -> Iterator[SweepRecord]:
        """Return all sweeps."""
        ...

    def of_job(self, job: str) -> object | None:
        """Return the trial of a job in a sweep, or None for a job that is no trial."""
        ...


def of_sweep(sweep: SweepRecord, subscription: Subscription, now: float) -> Iterator[Message]:
    """Yield the messages about a sweep for its owner that are due."""
    ended = sweep.over
    if ended is None or ended < oldest_sent(subscription, now):
        return
    if NotificationEvent.ENDED in subscription.events:
        kind = "Array" if sweep.plan.array else "Sweep"
        failed = sum(one.ended == "failed" for one in sweep.trials)
        trials = count(len(sweep.trials), "task" if sweep.plan.array else "trial")
        text = f"{kind} {sweep.name} ({sweep.id[:8]}) has ended: {trials}, {failed} failed."
        event, path = NotificationEvent.ENDED, f"sweeps/{sweep.id}"
        yield Message(f"{sweep.id}-over", event, ended, text, path)
