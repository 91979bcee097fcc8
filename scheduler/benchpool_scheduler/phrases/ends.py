"""States of jobs and GPUs, ends of attempts and logs, and retention of files.

The tables are keyed by wire values. A test compares each enumeration with its table.

>>> attempt_end("preempt", 143)
'paused for others, exit code 143'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Protocol

from benchpool_scheduler.phrases.numbers import count, data_size
from benchpool_scheduler.phrases.times import duration

STATES: Mapping[str, str] = MappingProxyType(
    {
        "queued": "queued",
        "starting": "starting",
        "running": "running",
        "pausing": "pausing",
        "paused": "paused",
        "succeeded": "succeeded",
        "failed": "failed",
        "cancelled": "cancelled",
    }
)
"""States of jobs."""

GPU_STATES: Mapping[str, str] = MappingProxyType(
    {
        "train-within-quota": "train, within quota",
        "train-over-quota": "train, over quota",
        "build-held": "bench, held",
        "build-free": "bench, kept free",
        "free": "free",
        "foreign": "used by others",
        "broken": "broken",
        "closed": "closed",
    }
)
"""States of GPUs in the order of a legend, from work to faults."""

ENDS: Mapping[str, str] = MappingProxyType(
    {
        "itself": "ended by itself",
        "preempt": "paused for others",
        "pause": "paused by hand",
        "cancel": "cancelled",
        "notice": "stopped after a notice",
        "time-limit": "stopped at its time limit",
        "out-of-memory": "ran out of memory",
        "could-not-start": "could not start",
        "not-taken": "not accepted by its node; nothing ran",
        "machine-fault": "not started because of a machine fault; nothing ran",
        "no-room": "rejected by a quota of the cluster; nothing ran",
        "lost": "lost with its machine; not counted as a failure",
    }
)
"""Ends of an attempt or a worker."""


class HeldFiles(Protocol):
    """Disk use of files of one kind and its limit, in bytes."""

    @property
    def part(self) -> str: ...

    @property
    def bytes(self) -> int: ...

    @property
    def limit(self) -> int: ...


def files_held(held: Iterable[HeldFiles]) -> str:
    """Return the disk use of a user's files against its limits; empty without limits.

    >>> from types import SimpleNamespace
    >>> files_held([SimpleNamespace(part="results", bytes=3 * 2**29, limit=2**31)])
    'results hold 1.5 GiB of 2.0 GiB'
    """
    return ", ".join(
        f"{one.part} hold {data_size(one.bytes)} of {data_size(one.limit)}" for one in held
    )


def hours_used(used: float, soft: float | None, hard: float | None, renewed: str) -> str:
    """Return the use of a monthly budget of GPU-hours.

    >>> hours_used(812.44, 600, 1000, "1 June 2027")
    '812.4 of 1000 GPU-hours this month, past the soft budget of 600; resets on 1 June 2027'
    >>> hours_used(3, 100, None, "1 December 2026")
    '3.0 of 100 (soft) GPU-hours this month; resets on 1 December 2026'
    """
    of = f"{hard:g}" if hard is not None else f"{soft or 0:g} (soft)"
    past = soft is not None and used > soft
    note = f", past the soft budget{f' of {soft:g}' if hard is not None else ''}" if past else ""
    full = ", all used up" if hard is not None and used >= hard else note
    return f"{used:.1f} of {of} GPU-hours this month{full}; resets on {renewed}"


def run_beyond(jobs: int) -> str:
    """Return the sentence on jobs that may still run when a node's maintenance begins.

    >>> run_beyond(1)
    '1 running job may still run when it begins.'
    """
    return f"{count(jobs, 'running job')} may still run when it begins."


def failed_with(exit_code: int) -> str:
    """Return how a failed job ended."""
    return f"ended with exit code {exit_code}"


def attempt_end(ended_by: str | None, exit_code: int | None) -> str:
    """Return how an attempt ended; ``ended_by`` is the wire value, None where unknown."""
    words = "ended" if ended_by is None else ENDS.get(ended_by, ended_by)
    return words if exit_code is None else f"{words}, exit code {exit_code}"


def log_end(attempt: int, newest: int, *, over: bool, empty: bool) -> str:
    """Return the line below the log of an ended attempt; ``over``: the job has ended, too.

    >>> log_end(1, 1, over=False, empty=False)
    'The log of attempt 1 is complete; attempt 2 follows when the job starts again.'
    """
    if over and attempt == newest == 1:
        return "The job wrote nothing." if empty else "The log is complete."
    end = f"The log of attempt {attempt} is complete"
    text = f"Attempt {attempt} wrote nothing" if empty else end
    if over and attempt == newest:
        return f"{text}."
    then = "followed" if attempt < newest else "follows when the job starts again"
    return f"{text}; attempt {attempt + 1} {then}."


class KeptUntil(Protocol):
    """Retention times of an ended job and its files, as in ``contract.Kept``."""

    @property
    def job(self) -> datetime:
        """Return the end of the job's retention."""

    @property
    def checkpoints(self) -> datetime:
        """Return the end of the checkpoints' retention."""

    @property
    def results(self) -> datetime:
        """Return the end of the results' retention."""

    @property
    def logs(self) -> datetime:
        """Return the end of the logs' retention."""


KEPT_PARTS = ("checkpoints", "results", "logs")
"""Kinds of files of a job with a retention time of their own."""


def kept_for(kept: KeptUntil, now: datetime) -> str:
    """Return the remaining retention of an ended job, and of its files if shorter.

    >>> from datetime import timedelta
    >>> from types import SimpleNamespace
    >>> now = datetime(2026, 11, 22)
    >>> month, week, past = (now + timedelta(days) for days in (30, 7, -1))
    >>> kept_for(SimpleNamespace(job=month, checkpoints=past, results=month, logs=week), now)
    '30 d more; checkpoints no longer, logs 7 d'
    """
    parts = []
    for name in KEPT_PARTS:
        until: datetime = getattr(kept, name)
        if until < kept.job:
            parts.append(f"{name} {_left(until, now) or 'no longer'}")
    job = _left(kept.job, now)
    text = f"{job} more" if job else "not much longer"
    return f"{text}; {', '.join(parts)}" if parts else text


def _left(until: datetime, now: datetime) -> str:
    seconds = (until - now).total_seconds()
    return duration(seconds) if seconds > 0 else ""


def no_longer_kept(kept: KeptUntil | None, part: str, now: datetime) -> str:
    """Return why files of a kind are gone, or an empty text before the end of their retention."""
    until: datetime | None = None if kept is None else getattr(kept, part)
    if until is None or until > now:
        return ""
    return (
        f"The {part} of this job were kept until {until.astimezone(UTC):%Y-%m-%d %H:%M} UTC; "
        "they are removed."
    )


def kept_days(ended: float, parts: Mapping[str, float]) -> str:
    """Return the retention of ended jobs in days, and of their files if shorter.

    >>> kept_days(30, {"checkpoints": 30, "results": 30, "logs": 7})
    'kept 30 days, logs 7 days'
    """
    own = [f", {name} {count(days, 'day')}" for name, days in parts.items() if days < ended]
    return f"kept {count(ended, 'day')}{''.join(own)}"
