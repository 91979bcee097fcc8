"""Reasons of jobs that only a reservation holds back, and of the job that owns it (R14, R22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from benchpool_scheduler.core.backfill.backfill import Backfill
from benchpool_scheduler.core.backfill.reservation import Reservation
from benchpool_scheduler.core.explain.sentences import measured, plain
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import JobId, NamedJob, ReasonCode, WaitReason
from benchpool_scheduler.phrases import exactly, is_are

SHORTEST_S = 1.0
"""Shortest time limit that is advised, in seconds."""


def held_back(backfill: Backfill, known: Mapping[JobId, WaitReason]) -> dict[JobId, WaitReason]:
    """Return the reasons of jobs that only the reservation holds back, and of its owner.

    Args:
        known: Reasons of all other jobs.
    """
    reservation, found = backfill.reservation, dict[JobId, WaitReason]()
    if reservation is None:
        return found
    for equal_jobs in backfill.only_held_back():
        reason = _held_back(backfill, equal_jobs.at(0), reservation)
        found.update(dict.fromkeys(equal_jobs.ids, reason))
    owner = reservation.info.job.id
    if owner in known:
        found[owner] = _reserved(known[owner])
    return found


def _held_back(backfill: Backfill, info: JobInfo, reservation: Reservation) -> WaitReason:
    owner, seconds = reservation.info, reservation.at_s - backfill.now_s
    free = backfill.state.capacity.free(info.requirements)
    reserved = plain(owner.min_gang.gpus, 0)
    longest = _below(seconds)
    total = backfill.state.total.gpus // WHOLE_GPU
    opening = f"waits for {measured(info.min_gang.gpus, 0)}: {free} of {total} {is_are(free)} free"
    ending = "which goes first"
    named = f"job {owner.job.id[:8]} of project {owner.branch.name}"
    return WaitReason(
        ReasonCode.RESERVED_FOR_OTHERS,
        f"{opening}, and kept for another job, {ending}",
        {
            "asked": plain(info.min_gang.gpus, 0),
            "free": free,
            "total": total,
            "project": info.branch.name,
            "reserved": reserved,
            "time_limit_s": longest,
            "would_start_limited_to": int(longest) if longest >= SHORTEST_S else None,
        },
        f"it would start now with a time limit of {exactly(longest)} or less"
        if longest >= SHORTEST_S
        else "it starts by itself when the other job has started, or enough GPUs become free",
        NamedJob(owner.job.id, f"{opening}, and kept for {named}, {ending}"),
    )


def _reserved(reason: WaitReason) -> WaitReason:
    # Only the estimate of its start shows when.
    kept = "GPUs are kept for it as they become free"
    return replace(reason, remedy=f"{reason.remedy}; {kept}")


def _below(seconds: float) -> float:
    """Return a round time that is not longer than ``seconds``, so that advice changes rarely.

    >>> _below(7.9), _below(61.0), _below(2430.0), _below(100_000.0)
    (7.0, 60.0, 2400.0, 97200.0)
    """
    steps = ((1, 60.0), (60, 7200.0), (3600, float("inf")))
    step = next(size for size, most in steps if seconds < most)
    return float(seconds // step * step)
