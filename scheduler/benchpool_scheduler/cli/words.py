"""How the terminal shows ids, text, times and states. Pure; the phrases are those of ``phrases``.

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
    """Return how long ago a job was sent, whatever became of it."""
    return duration((now - job.submitted).total_seconds())


def local(at: datetime | None) -> str:
    """Return a time in the reader's zone, or a dash."""
    return "-" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def note(job: Job, now: datetime | None = None) -> str:
    """Return what to say beside the state: why it waits, how far it is, how it ended.

    The newest pause comes first while it is one: who needs the room, what was saved, that it is
    back.

    Args:
        now: Without it nothing is said of a pause.
    """
    pause = "" if now is None else pause_words(job.pause, now)
    rest = _rest(job)
    if job.pause is not None and job.pause.stage == "saving" and pause:
        return pause  # the reason says the same at more length
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
        text = done(progress.fraction, progress.fell_from, text)
    ends = progress.ends
    rest = left(None if ends is None else (ends - datetime.now(UTC)).total_seconds())
    return ", ".join(filter(None, [text, rest]))


def bound(value: int | None) -> str:
    """Return a quota or limit; None is no bound."""
    return "no limit" if value is None else str(value)
