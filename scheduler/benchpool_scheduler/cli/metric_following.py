"""Following of a job's metrics: one line for each new value, until the job has ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchpool_scheduler.client import Client, following
from benchpool_scheduler.contract import ENDED, JobMetrics, MetricPoint
from benchpool_scheduler.phrases.sparks import metric

Newest = Mapping[str, tuple[int, MetricPoint]]
"""Newest value of each metric, with the attempt that reported it."""


def newest(answer: JobMetrics) -> Newest:
    """Return the newest value of each metric."""
    return {it.name: (it.attempts[-1], it.last) for it in answer.curves if it.last is not None}


def news_of(before: Newest, now: Newest) -> dict[str, tuple[int, MetricPoint]]:
    """Return the values that are new or have changed."""
    return {name: it for name, it in now.items() if before.get(name) != it}


def lines_of(news: Newest) -> Iterator[str]:
    """Yield one line per attempt and step with its values.

    >>> list(lines_of({"loss": (1, MetricPoint(20, 0.5)), "lr": (1, MetricPoint(20, 0.1))}))
    ['step 20: loss 0.5, lr 0.1']
    >>> list(lines_of({"loss": (2, MetricPoint(7, 0.25))}))
    ['step 7: loss 0.25 (attempt 2)']
    """
    for attempt, step in sorted({(attempt, at.step) for attempt, at in news.values()}):
        values = ", ".join(
            f"{name} {metric(at.value)}"
            for name, (of, at) in news.items()
            if (of, at.step) == (attempt, step)
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
        if not ended and (job.attempt, job.metrics) == seen:
            continue
        seen = job.attempt, job.metrics
        now = newest(client.job_metrics(id_, name=name, points=10))
        if news := news_of(before, now):
            yield news
        before = now
        if ended:
            return
