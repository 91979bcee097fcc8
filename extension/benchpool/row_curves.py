"""Metrics in the row of a job in a notebook: one line of plain text."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from benchpool_scheduler.contract import ENDED, Curve, Job, JobMetrics
from benchpool_scheduler.phrases.sparks import metric, spark

SHOWN = 3
WIDTH = 24
POINTS = 100
AGAIN_S = 0.8
"""Minimum pause between reads of a job's metrics, in seconds; shorter than that of reports."""
SHARE = 3
"""Minimum pause in multiples of the time of the last read, so that slow reads become rare."""


def curve_line(answer: JobMetrics) -> str:
    """Return the newest values and small curves of the first names; empty if there are none.

    >>> curve_line(JobMetrics("a", "train", None, []))
    ''
    """
    shown = [_of(it) for it in answer.curves[:SHOWN]]
    more = len(answer.curves) - SHOWN
    return "   ".join([*shown, *([f"and {more} more"] if more > 0 else [])])


def _of(curve: Curve) -> str:
    picture = spark(curve.steps, curve.values, curve.attempts, WIDTH)
    return f"{curve.name} {metric(curve.values[-1])} {picture}"


class CurvePace:
    """Turns to read a job's metrics: after its reports, with pauses, and after its end.

    Args:
        again_s: Least pause between two reads, in seconds. It grows with the time of a read.
    """

    def __init__(self, again_s: float = AGAIN_S) -> None:
        self._again_s = again_s
        self._known: object = None
        self._news = threading.Event()
        self._over = threading.Event()

    def see(self, facts: Job) -> bool:
        """Take the present facts of the job; return whether its metrics are to be read again."""
        known = (facts.attempt, facts.metrics, facts.metrics_updated)
        reported = bool(facts.metrics or facts.metrics_updated) and known != self._known
        self._known = known
        if facts.state in ENDED:
            self.end()
        elif reported:
            self._news.set()
        return reported or facts.state in ENDED

    def end(self) -> None:
        """Make the next turn the last one."""
        self._over.set()
        self._news.set()

    def turns(self) -> Iterator[None]:
        """Yield when the metrics are to be read, and wait meanwhile."""
        while True:
            self._news.wait()
            self._news.clear()
            last, began = self._over.is_set(), time.monotonic()
            yield
            if last:
                return
            self._over.wait(max(self._again_s, SHARE * (time.monotonic() - began)))
