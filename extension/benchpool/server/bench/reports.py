"""Timing and content of a notebook server's activity reports. Pure."""

from __future__ import annotations

from benchpool_scheduler.contract.idle_benches import BenchActivity, BenchIdleness, BenchStep

REPORT_S = 20.0
"""Interval between reports while the activity does not change, in seconds."""

AGAIN_S = 2.0
"""Minimum interval between reports, in seconds."""

CLIMBING = frozenset({BenchStep.TOLD, BenchStep.ASKED, BenchStep.DUE})
"""Steps in which each executed cell is reported at once."""


def is_working(activity: BenchActivity) -> bool:
    """Return whether a kernel or a terminal is working.

    >>> is_working(BenchActivity(kernels=1, busy_kernels=0, executions=4, terminal_programs=1))
    True
    """
    return activity.busy_kernels > 0 or bool(activity.terminal_programs)


def has_new_work(now: BenchActivity, reported: BenchActivity | None) -> bool:
    """Return whether there is work or an execution that was not reported yet."""
    if reported is None:
        return False
    return now.executions > reported.executions or (is_working(now) and not is_working(reported))


def is_due(
    now: BenchActivity,
    reported: BenchActivity | None,
    since_s: float,
    answer: BenchIdleness | None,
) -> bool:
    """Return whether a report is due.

    ``reported`` is the last report, made ``since_s`` seconds ago, and ``answer`` the answer to it.

    >>> rests = BenchActivity(kernels=1, busy_kernels=0, executions=4, terminal_programs=0)
    >>> works = BenchActivity(kernels=1, busy_kernels=1, executions=5, terminal_programs=0)
    >>> is_due(rests, None, 0.0, None), is_due(rests, rests, 5.0, None)
    (True, False)
    >>> is_due(works, rests, 5.0, None), is_due(rests, works, 1.0, None)
    (True, False)
    """
    if reported is None or since_s >= REPORT_S:
        return True
    if since_s < AGAIN_S:
        return False
    climbs = answer is not None and answer.step in CLIMBING
    return is_working(now) != is_working(reported) or (climbs and has_new_work(now, reported))
