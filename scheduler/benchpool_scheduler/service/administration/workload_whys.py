"""Reasons why jobs of a replayed workload fare worse in the second pool: a sentence per figure."""

from __future__ import annotations

from collections.abc import Iterator

from benchpool_scheduler.phrases import count, duration, is_are
from benchpool_scheduler.simulation.whatif import Replayed
from benchpool_scheduler.simulation.whatif_causes import (
    PauseCauses,
    PauseKind,
    WaitCauses,
)

WAITS = ("mean_wait_h", "p95_wait_h", "mean_jct_h")

_PAUSES = {
    PauseKind.OF_WAITING: (
        "1 stops a job that would still wait",
        "stop jobs that would still wait",
    ),
    PauseKind.OF_ENDED: (
        "1 stops a job that would have ended",
        "stop jobs that would have ended",
    ),
    PauseKind.FOR_WAITING: (
        "1 is for a job that would still wait",
        "are for jobs that would still wait",
    ),
    PauseKind.FOR_SERVED: (
        "1 is for a job that would have its GPUs by then",
        "are for jobs that would have their GPUs by then",
    ),
}
"""Phrases for one pause of a kind, and for several."""


def whys(found: Replayed) -> dict[str, str]:
    """Return a sentence for each figure of the whole pool, by its key, whether or not it got
    worse.
    """
    longer = why_longer(found.waits)
    return {
        **dict.fromkeys(WAITS, longer),
        "short_job_wait_min": why_longer(found.short_waits),
        "preemptions_per_job": why_more_pauses(found.pauses),
        "lost_gpu_h": why_more_lost(found.pauses),
    }


def why_longer(of: WaitCauses) -> str:
    """Return the reason for longer waits.

    >>> why_longer(WaitCauses(jobs=9, longer=3, paused=1, later=2, passed=2))
    '3 of 9 jobs wait longer: 1 is paused more often, 2 start later, behind jobs that run sooner.'
    """
    verb = "waits" if of.longer == 1 else "wait"
    return f"{of.longer} of {count(of.jobs, 'job')} {verb} longer: {', '.join(_longer(of))}."


def _longer(of: WaitCauses) -> Iterator[str]:
    if of.paused:
        yield f"{of.paused} {is_are(of.paused)} paused more often"
    if of.later:
        some = f"{of.passed} of them " if of.passed < of.later else ""
        behind = f", {some}behind jobs that run sooner" if of.passed else ""
        yield f"{of.later} {'starts' if of.later == 1 else 'start'} later{behind}"
    if rest := of.longer - of.paused - of.later:
        yield f"{rest} {'loses' if rest == 1 else 'lose'} more time to pauses"


def why_more_pauses(of: PauseCauses) -> str:
    """Return the reason for more pauses.

    >>> why_more_pauses(PauseCauses(2, 7, 8, 20, 0.0, 0.0, {PauseKind.OF_WAITING: 7}))
    'Of 7 pauses, 7 stop jobs that would still wait without the change.'
    """
    parts = [
        one if number == 1 else f"{number} {many}"
        for kind, (one, many) in _PAUSES.items()
        if (number := of.kinds.get(kind, 0))
    ]
    return f"Of {count(of.after, 'pause')}, {', '.join(parts)} without the change."


def why_more_lost(of: PauseCauses) -> str:
    """Return the reason for more work lost by pauses.

    >>> why_more_lost(PauseCauses(2, 2, 2, 8, 120.0, 480.0, {}))
    'The paused jobs hold 8 GPUs in all instead of 2.'
    """
    if of.after > of.before:
        return f"{count(of.after, 'pause')} instead of {of.before}."
    if of.gpus_after > of.gpus_before:
        return f"The paused jobs hold {of.gpus_after} GPUs in all instead of {of.gpus_before}."
    after, before = (
        duration(lost / max(1, gpus))
        for lost, gpus in ((of.lost_after, of.gpus_after), (of.lost_before, of.gpus_before))
    )
    return f"A pause costs {after} of each of its GPUs instead of {before}."
