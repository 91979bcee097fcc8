"""Pauses for readers: each with its cost, and the state of the newest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from benchpool_scheduler import contract, phrases
from benchpool_scheduler.core.lifecycle.states import Intent, JobState
from benchpool_scheduler.phrases import visible
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.store.records import AttemptRecord, JobRecord, PreemptionRecord

ForWhom = Callable[[PreemptionRecord], str]
"""Returns the claimant of a pause, as far as the reader may see it."""

_AWAY = frozenset({JobState.QUEUED, JobState.PAUSED, JobState.STARTING})


def pause_of(it: PreemptionRecord, for_whom: str) -> contract.Preemption:
    """Return one pause in the form of the API."""
    return contract.Preemption(
        at=moment(it.at),
        for_=for_whom,
        rule=it.rule,
        lost_gpu_s=round(it.cost_gpu_s, 1),
        resumed_at=_moment(it.resumed_at),
        ended_at=_moment(it.ended),
        unsaved_gpu_s=_rounded(it.unsaved_gpu_s),
        restart_gpu_s=_rounded(it.restart_gpu_s),
        saved_at=_moment(it.saved_at),
        saved_step=it.saved_step,
        by=it.by,
        reason=visible(it.said),
        cost=phrases.pause_cost(it.lost_gpu_s, it.unsaved_gpu_s, it.restart_gpu_s),
    )


def moment_of(
    job: JobRecord,
    attempt: AttemptRecord | None,
    pauses: Sequence[PreemptionRecord],
    for_whom: ForWhom,
) -> contract.PauseMoment | None:
    """Return the state of a job's newest pause, or None if it is over or there is none.

    Args:
        attempt: The newest attempt.
    """
    if not pauses:
        return None
    newest = pauses[-1]
    if job.state is JobState.PAUSING:
        return _saving(job, newest, for_whom)
    if job.state in _AWAY:
        return _saved(job, newest)
    if job.state is JobState.RUNNING and attempt is not None:
        return _back(newest, attempt)
    return None


def _saving(
    job: JobRecord, newest: PreemptionRecord, for_whom: ForWhom
) -> contract.PauseMoment | None:
    if (
        job.stop_request is None
        or job.stop_request.kind is Intent.CANCEL
        or newest.attempt != job.attempt
    ):
        return None
    if newest.by is None:
        why = phrases.needs(for_whom(newest), newest.needs)
    else:
        why = phrases.paused_by(newest.by, visible(newest.said))
    until = moment(job.stop_request.at + job.stop_request.grace_s)
    return contract.PauseMoment("saving", phrases.saving(why), moment(newest.at), until)


def _saved(job: JobRecord, newest: PreemptionRecord) -> contract.PauseMoment | None:
    if newest.ended is None or newest.unsaved_gpu_s is None or newest.resumed_at is not None:
        return None
    unsaved_s = newest.unsaved_gpu_s / max(1, newest.gpus)
    if newest.saved_at is None:
        saved_before = job.progress is not None and job.progress.checkpoint_at is not None
        text = phrases.nothing_saved(unsaved_s, earlier=saved_before)
    else:
        text = phrases.what_was_saved(newest.saved_step, newest.saved, unsaved_s)
    return contract.PauseMoment("saved", text, moment(newest.ended), None)


def _back(newest: PreemptionRecord, attempt: AttemptRecord) -> contract.PauseMoment | None:
    if newest.resumed_at is None or newest.resumed_at != attempt.started:
        return None
    return contract.PauseMoment(
        "back", phrases.back(attempt.attempt), moment(newest.resumed_at), None
    )


def _moment(at: float | None) -> datetime | None:
    return None if at is None else moment(at)


def _rounded(amount: float | None) -> float | None:
    return None if amount is None else round(amount, 1)
