"""Curves in the row of a job in a notebook: one line of plain text."""

from __future__ import annotations

from benchpool_scheduler.contract import Curve, Job, JobMetrics
from benchpool_scheduler.phrases.sparks import metric, spark

SHOWN = 3
WIDTH = 24
POINTS = 100
AGAIN_S = 5.0
"""A job that reports is asked for its curves again after so many seconds at the earliest."""


def curve_line(answer: JobMetrics) -> str:
    """Return the newest values and small curves of the first names; empty without any.

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
    """Tells when a job's curves are asked for: when it has reported, seldom, and at its end."""

    def __init__(self) -> None:
        self._asked_at = -AGAIN_S
        self._known: object = None

    def due(self, facts: Job, now: float, *, over: bool) -> bool:
        """Tell whether to ask now.

        Args:
            now: Seconds of a clock that never goes back. ``over``: the job has ended.
        """
        news = (facts.attempt, dict(facts.metrics), over)
        if news == self._known or (not over and now - self._asked_at < AGAIN_S):
            return False
        self._known, self._asked_at = news, now
        return bool(facts.metrics) or over
