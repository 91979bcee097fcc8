"""Following of a job's metrics: one line for each new value, until the job has ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from benchpool_scheduler.client import Client, following
from benchpool_scheduler.contract import ENDED, JobMetrics
from benchpool_scheduler.phrases.sparks import metric


class NewestValue(NamedTuple):
    """Newest value of a metric; None is not a finite number."""

    attempt: int
    step: int
    value: float | None


Newest = Mapping[str, NewestValue]
"""Newest value of each metric."""


def newest(answer: JobMetrics) -> Newest:
    """Return the newest value of each metric.

    >>> from benchpool_scheduler.contract import Curve
    >>> curve = Curve("loss", [1, 2], [0.5, None], [0.0, 1.0], [1, 1], None, None, None)
    >>> newest(JobMetrics("a", "train", None, [curve]))["loss"]
    NewestValue(attempt=1, step=2, value=None)
    """
    return {
        it.name: NewestValue(it.attempts[-1], it.steps[-1], it.values[-1]) for it in answer.curves
    }


def news_of(before: Newest, now: Newest) -> Newest:
    """Return the values that are new or have changed."""
    return {name: it for name, it in now.items() if before.get(name) != it}


def lines_of(news: Newest) -> Iterator[str]:
    """Yield one line per attempt and step with its values.

    >>> list(lines_of({"loss": NewestValue(1, 20, 0.5), "lr": NewestValue(1, 20, 0.1)}))
    ['step 20: loss 0.5, lr 0.1']
    >>> list(lines_of({"loss": NewestValue(2, 7, None)}))
    ['step 7: loss no number (attempt 2)']
    """
    for attempt, step in sorted({it[:2] for it in news.values()}):
        values = ", ".join(
            f"{name} {metric(it.value)}" for name, it in news.items() if it[:2] == (attempt, step)
        )
        yield f"step {step}: {values}" + (f" (attempt {attempt})" if attempt > 1 else "")


def follow(client: Client, id_: str, name: str | None, before: Newest) -> Iterator[Newest]:
    """Yield the new metrics of a job until it has ended.

    Args:
        name: Only this metric, if given. ``before``: values known already.
    """
    seen: object = None
    for job in following.changes(client, id_):
        ended = job.state in ENDED
        reported = job.attempt, job.metrics, job.metrics_updated
        if not ended and reported == seen:
            continue
        seen = reported
        now = newest(client.job_metrics(id_, name=name, points=10))
        if news := news_of(before, now):
            yield news
        before = now
        if ended:
            return
