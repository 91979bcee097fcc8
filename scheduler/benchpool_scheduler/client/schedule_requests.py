"""Requests for schedules: what repeats a submission at set times, and in which time zone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.contract.schedules import ScheduleRequest
from benchpool_scheduler.errors import InvalidInput

_LOCALTIME = Path("/etc/localtime")


def request_of(submission: JobSubmission, every: str, zone: str | None = None) -> ScheduleRequest:
    """Return the request for a schedule, by default in this machine's time zone."""
    return ScheduleRequest(submission, every, zone or own_zone(), submission.name, submission.key)


def check_alone(
    every: object, zone: object, others: Iterable[str], flag: str = "--", where: str = ""
) -> None:
    """Refuse a time zone without a schedule, and options that conflict with a schedule.

    Args:
        others: Names of the conflicting options given.
        flag: Prefix of an option's name in the message. ``where``: prefix of the message.

    Errors: InvalidInput.

    >>> check_alone("night at 2", "UTC", [])
    >>> check_alone(None, "UTC", [], where="%%train: ")
    Traceback (most recent call last):
        ...
    benchpool_scheduler.errors.InvalidInput: %%train: --zone needs --every WHEN.
    """
    if zone and not every:
        raise InvalidInput(f"{where}{flag}zone needs {flag}every WHEN.", field="zone")
    other = next(iter(others), None)
    if every and other is not None:
        raise InvalidInput(
            f"{where}{flag}{other} cannot be combined with {flag}every.", field="every"
        )


def own_zone() -> str:
    """Return the name of this machine's time zone, or UTC if it has none."""
    named = os.environ.get("TZ", "").lstrip(":")
    if named and not named.startswith("/"):
        return named
    _, found, zone = str(_LOCALTIME.resolve()).partition("zoneinfo/")
    return zone if found else "UTC"
