"""Terminal forms of IDs, text, times and states. Pure. The phrases are those of ``phrases``.

>>> cut_in_middle("a-very-long-name-of-a-job", 12)
'a-very…a-job'
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.phrases import done, duration, failed_with, left, pause_words, visible

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
"""Symbol and colour shown beside the word of a state. The word is always shown too."""


def short(id_: str) -> str:
    """Return the short form of an ID, as users read and type it."""
    return id_[:8]


def clean(text: str) -> str:
    r"""Return text on one line, without characters that would control a terminal.

    >>> clean("a\x1b[31mb\nc")
    'a\\x1b[31mb c'
    """
    return visible(" ".join(text.split()))


def cut_in_middle(text: str, width: int) -> str:
    """Return text of at most ``width`` characters. Its beginning and end are kept."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def age(job: Job, now: datetime) -> str:
    """Return the time since a job was submitted."""
    return duration((now - job.submitted).total_seconds())


def local(at: datetime | None) -> str:
    """Return a time in the user's time zone, or a dash."""
    return "-" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def note(job: Job, now: datetime | None = None) -> str:
    """Return the note beside the state: why the job waits, its progress, or how it ended.

    A current pause comes first: who claims the GPUs, what was saved, and the resumption.

    Args:
        now: Current time. Without it the note contains no pause.
    """
    pause = "" if now is None else pause_words(job.pause, now)
    rest = _rest(job)
    if job.pause is not None and job.pause.stage == "saving" and pause:
        return pause  # the reason has the same content in more detail
    return "; ".join(part for part in (pause, rest) if part)


def _rest(job: Job) -> str:
    if job.reason is not None:
        return job.reason.text
    if job.state is State.FAILED and job.exit_code is not None:
        return failed_with(job.exit_code)
    if job.progress is None:
        return "over quota: may be paused for others" if job.over_quota else ""
    progress = job.progress
    text = progress.text or ""
    if progress.fraction is not None:
        text = done(progress.fraction, progress.previous_progress, text)
    ends = progress.ends
    rest = left(None if ends is None else (ends - datetime.now(UTC)).total_seconds())
    return ", ".join(filter(None, [text, rest]))


def bound(value: int | None) -> str:
    """Return a quota or limit as text. None means no limit."""
    return "no limit" if value is None else str(value)
