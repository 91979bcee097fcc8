"""Failures and retries in the status of a ``TrainingJob``: what is written is found again."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import asdict

from benchpool_scheduler.resources.retries import FailureStatus, RetryStatus
from benchpool_scheduler.store.retries import FailureRecord, RetryRecord


def failure(it: FailureRecord | None) -> FailureStatus | None:
    """Return what a status says of a worker's failure."""
    return None if it is None else FailureStatus(**asdict(it))


def read_failure(it: FailureStatus | None) -> FailureRecord | None:
    """Return what a status says of a worker's failure as a record."""
    return None if it is None else FailureRecord(**asdict(it))


def retry(it: RetryRecord) -> RetryStatus:
    """Return what a status says of a retry."""
    return RetryStatus(**{**asdict(it), "at": datetime.fromtimestamp(it.at, UTC)})


def read_retry(it: RetryStatus) -> RetryRecord:
    """Return what a status says of a retry as a record."""
    return RetryRecord(**{**asdict(it), "at": it.at.timestamp()})
