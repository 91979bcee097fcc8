"""Failures and retries in the status of a ``TrainingJob``: encoding and decoding."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import asdict

from benchpool_scheduler.resources.retries import FailureStatus, RetryStatus
from benchpool_scheduler.store.retries import FailureRecord, RetryRecord


def failure(it: FailureRecord | None) -> FailureStatus | None:
    """Encode the failure of a worker for the status."""
    return None if it is None else FailureStatus(**asdict(it))


def read_failure(it: FailureStatus | None) -> FailureRecord | None:
    """Decode the failure of a worker from the status."""
    return None if it is None else FailureRecord(**asdict(it))


def retry(it: RetryRecord) -> RetryStatus:
    """Encode a retry for the status."""
    return RetryStatus(**{**asdict(it), "at": datetime.fromtimestamp(it.at, UTC)})


def read_retry(it: RetryStatus) -> RetryRecord:
    """Decode a retry from the status."""
    return RetryRecord(**{**asdict(it), "at": it.at.timestamp()})
