"""Outlook of jobs on their deadlines, for readers."""

from __future__ import annotations

from benchpool_scheduler import contract
from benchpool_scheduler.contract.deadlines import DeadlineOutlook, DeadlineStanding
from benchpool_scheduler.core.forecast import deadlines
from benchpool_scheduler.core.forecast.deadlines import Judgement, RunLength, RunStart
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.runtime_estimator import ran_s
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.service.views import pace
from benchpool_scheduler.store.records import JobRecord

HOLDS = (JobState.STARTING, JobState.RUNNING)
"""States in which a job is expected to continue as it is."""


def standing(
    ledger: Ledger, record: JobRecord, start: contract.EstimatedStart | None, now: float
) -> DeadlineStanding | None:
    """Return a job's outlook on its deadline, or None if it has none or was cancelled.

    Args:
        start: The published estimate of its start, if it waits and one is known.
    """
    if record.spec.deadline is None or record.state is JobState.CANCELLED:
        return None
    at = record.spec.deadline.timestamp()
    if record.ended is not None:
        well = record.state is JobState.SUCCEEDED
        return _outlook(deadlines.judge_ended(at, record.ended, well=well))
    length = _length(ledger, record, now)
    return _outlook(deadlines.judge_open(at, _start(record, start, now), length, now))


def _outlook(found: Judgement) -> DeadlineStanding:
    earliest, latest = found.earliest_s, found.latest_s
    return DeadlineStanding(
        DeadlineOutlook(found.state.value),
        found.text,
        None if earliest is None else moment(earliest),
        None if latest is None else moment(latest),
    )


def _start(record: JobRecord, start: contract.EstimatedStart | None, now: float) -> RunStart:
    if record.state in HOLDS:
        return RunStart(now, now, waits=False)
    waits = record.attempt == 0
    if start is None:
        return RunStart(None, None, waits)
    earliest = None if start.earliest is None else start.earliest.timestamp()
    latest = None if start.latest is None else start.latest.timestamp()
    return RunStart(earliest, latest, waits)


def _length(ledger: Ledger, record: JobRecord, now: float) -> RunLength:
    attempts = ledger.attempts(record.id)
    runs = record.state is JobState.RUNNING
    until = now if runs else None
    limit_s, began = record.spec.time_limit_s, attempts[-1].started if attempts else None
    left_s = None if limit_s is None else float(limit_s)
    if left_s is not None and runs and began is not None:
        left_s -= now - began
    ends = pace.ends_at(record.progress) if runs and record.progress is not None else None
    return deadlines.length_of(
        ledger.runtime_estimator.expectation(record, attempts, until),
        ran_s(attempts, until),
        left_s,
        None if ends is None else ends - now,
    )
