"""When a notebook server reports what it does, and what it reports; pure."""

from __future__ import annotations

from benchpool_scheduler.contract.idle_benches import BenchActivity, BenchIdleness, BenchStep

REPORT_S = 20.0
"""Between two reports while nothing changes."""

AGAIN_S = 2.0
"""Between two reports at least, however much changes."""

CLIMBING = frozenset({BenchStep.TOLD, BenchStep.ASKED, BenchStep.DUE})
"""Steps in which each cell that was run counts at once."""


def is_working(activity: BenchActivity) -> bool:
    """Tell whether anything works.

    >>> is_working(BenchActivity(kernels=1, busy_kernels=0, executions=4, terminal_programs=1))
    True
    """
    return activity.busy_kernels > 0 or bool(activity.terminal_programs)


def works_anew(now: BenchActivity, told: BenchActivity | None) -> bool:
    """Tell whether something works, or was executed, of which was not told."""
    if told is None:
        return False
    return now.executions > told.executions or (is_working(now) and not is_working(told))


def is_due(
    now: BenchActivity,
    told: BenchActivity | None,
    since_s: float,
    answer: BenchIdleness | None,
) -> bool:
    """Tell whether it is time to report.

    Args:
        told: The last report, ``since_s`` ago, and ``answer`` to it.

    >>> rests = BenchActivity(kernels=1, busy_kernels=0, executions=4, terminal_programs=0)
    >>> works = BenchActivity(kernels=1, busy_kernels=1, executions=5, terminal_programs=0)
    >>> is_due(rests, None, 0.0, None), is_due(rests, rests, 5.0, None)
    (True, False)
    >>> is_due(works, rests, 5.0, None), is_due(rests, works, 1.0, None)
    (True, False)
    """
    if told is None or since_s >= REPORT_S:
        return True
    if since_s < AGAIN_S:
        return False
    climbs = answer is not None and answer.step in CLIMBING
    return is_working(now) != is_working(told) or (climbs and works_anew(now, told))
