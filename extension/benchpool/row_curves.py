"""Metrics in the row of a job in a notebook: one line of plain text."""

from __future__ import annotations

from benchpool_scheduler.contract import Curve, Job, JobMetrics
from benchpool_scheduler.phrases.sparks import metric, spark

SHOWN = 3
WIDTH = 24
POINTS = 100
AGAIN_S = 5.0
"""Minimum interval between reads of a job's metrics, in seconds."""


def curve_line(answer: JobMetrics) -> str:
    """Return the newest values and small curves of the first names; empty if there are none.

    >>> curve_line(JobMetrics("a", "train", None, []))
    ''
    """
    shown = [_of(it) for it in answer.curves[:SHOWN]]
    more = len(answer.curves) - SHOWN
    return "   ".join([*shown, *([f"and {more} more"] if more > 0 else [])])


def _of(curve: Curve) -> str:
    last = None if curve.last is None else curve.last.value
    return f"{curve.name} {metric(last)} {spark(curve.steps, curve.values, curve.attempts, WIDTH)}"


class CurvePace:
    """Timing of reads of a job's metrics: after a report, with a rate limit, and at its end."""

    def __init__(self) -> None:
        self._asked_at = -AGAIN_S
        self._known: object = None

    def due(self, facts: Job, now: float, *, over: bool) -> bool:
        """Return whether to read the metrics now.

        Args:
            now: Time of a monotonic clock, in seconds.
            over: The job has ended.
        """
        news = (facts.attempt, dict(facts.metrics), over)
        if news == self._known or (not over and now - self._asked_at < AGAIN_S):
            return False
        self._known, self._asked_at = news, now
        return bool(facts.metrics) or over
