"""How the terminal shows ids, text, times and states. Pure; the phrases are those of ``phrases``.

>>> cut_in_middle("a-very-long-name-of-a-job", 12)
'a-very…a-job'
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.phrases import duration, failed_with, visible

STATE_SIGNS: Mapping[State, tuple[str, str]] = {
    State.QUEUED: ("◔", "yellow"),
    State.STARTING: ("◑", "cyan"),
    State.RUNNING: ("●", "green"),
    State.PAUSING: ("◐", "yellow"),
    State.PAUSED: ("‖", "yellow"),
    State.SUCCEEDED: ("✔", "green"),
    State.FAILED: ("✖", "red"),
    State.CANCELLED: ("○", "bright_black"),
}
"""Shape and colour beside the word of a state; the word is always there too."""


def short(id_: str) -> str:
    """Return the part of an id that people read and type."""
    return id_[:8]


def clean(text: str) -> str:
    r"""Return text on one line, without signs that would steer a terminal.

    >>> clean("a\x1b[31mb\nc")
    'a\\x1b[31mb c'
    """
    return visible(" ".join(text.split()))


def cut_in_middle(text: str, width: int) -> str:
    """Return text of at most ``width`` signs; beginnings and ends tell names apart."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def age(job: Job, now: datetime) -> str:
    """Return how long a job has waited or run, or how long it ran."""
    begin = job.started or job.submitted
    return duration(((job.ended or now) - begin).total_seconds())


def local(at: datetime | None) -> str:
    """Return a time in the reader's zone, or a dash."""
    return "-" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def note(job: Job) -> str:
    """Return what to say beside the state: why it waits, how far it is, how it ended."""
    if job.state is State.FAILED and job.exit_code is not None:
        return failed_with(job.exit_code)
    if job.reason is not None:
        return job.reason.text
    if job.progress is None:
        return "over quota: may be paused for others" if job.over_quota else ""
    part = "" if job.progress.fraction is None else f"{job.progress.fraction:.0%} "
    return f"{part}{job.progress.text or ''}".strip()


def bound(value: int | None) -> str:
    """Return a quota or limit; None is no bound."""
    return "no limit" if value is None else str(value)
