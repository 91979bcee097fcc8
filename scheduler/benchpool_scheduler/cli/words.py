"""How the terminal says times, amounts and states. Pure.

>>> duration(42), duration(754), duration(11100), duration(187200)
('42 s', '12 min', '3 h 05 min', '2 d 4 h')
>>> cut_in_middle("a-very-long-name-of-a-job", 12)
'a-very…a-job'
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from benchpool_scheduler.contract import EstimatedStart, GpuState, Job, State

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

GPU_WORDS: Mapping[GpuState, str] = {
    GpuState.TRAIN_WITHIN_QUOTA: "train, within quota",
    GpuState.TRAIN_OVER_QUOTA: "train, over quota",
    GpuState.BUILD_HELD: "bench, in use",
    GpuState.BUILD_FREE: "bench, kept free",
    GpuState.FREE: "free",
    GpuState.FOREIGN: "used by others",
    GpuState.BROKEN: "broken",
}


def short(id_: str) -> str:
    """Return the part of an id that people read and type."""
    return id_[:8]


def clean(text: str) -> str:
    r"""Return text without signs that would steer a terminal.

    >>> clean("a\x1b[31mb\nc")
    'a·[31mb c'
    """
    spaced = " ".join(text.split())
    return "".join(sign if sign.isprintable() else "·" for sign in spaced)


def cut_in_middle(text: str, width: int) -> str:
    """Return text of at most ``width`` signs; beginnings and ends tell names apart."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def duration(seconds: float) -> str:
    """Return a length of time in one or two units."""
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 60:
        return f"{whole} s"
    if minutes < 60:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h {minutes % 60:02d} min"
    return f"{days} d {hours % 24} h"


def age(job: Job, now: datetime) -> str:
    """Return how long a job has waited or run, or how long it ran."""
    begin = job.started or job.submitted
    return duration(((job.ended or now) - begin).total_seconds())


def local(at: datetime | None) -> str:
    """Return a time in the reader's zone, or a dash."""
    return "-" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def estimate(start: EstimatedStart | None, now: datetime) -> str:
    """Return the start as a range.

    >>> estimate(None, datetime.fromisoformat("2026-01-01T00:00Z"))
    'not known yet'
    """
    if start is None or (start.earliest or start.latest or start.likely) is None:
        return "not known yet"
    bounds = [
        duration((at - now).total_seconds())
        for at in (start.earliest or start.likely, start.latest)
        if at is not None
    ]
    return f"in {' to '.join(dict.fromkeys(bounds))}"


def note(job: Job) -> str:
    """Return what to say beside the state: why it waits, how far it is, how it ended."""
    if job.state is State.FAILED and job.exit_code is not None:
        return f"exit code {job.exit_code}"
    if job.reason is not None:
        return job.reason.text
    if job.progress is None:
        return "over quota: may be paused for others" if job.over_quota else ""
    part = "" if job.progress.fraction is None else f"{job.progress.fraction:.0%} "
    return f"{part}{job.progress.text or ''}".strip()


def bound(value: int | None) -> str:
    """Return a quota or limit; None is no bound."""
    return "no limit" if value is None else str(value)
