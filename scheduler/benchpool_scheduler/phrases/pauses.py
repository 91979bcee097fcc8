"""Texts on a pause: the claimant, what was saved, the resumption, and the cost.

>>> saving(needs("jemma", 2))
'jemma needs 2 GPUs: saving'
>>> what_was_saved(467, 0.62, unsaved_s=0.4), back(2)
('saved at step 467, nothing lost', 'back: attempt 2')
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from benchpool_scheduler.phrases.numbers import count, percent
from benchpool_scheduler.phrases.times import duration, gpu_time

NOTHING_S = 5.0
"""Unsaved run time up to which a pause counts as no loss, in seconds."""

BACK_S = 300.0
"""Time for which a resumed job is shown as back, in seconds."""


def needs(whom: str, gpus: int) -> str:
    """Return which claimant needs the GPUs, without a number if it is unknown.

    >>> needs("benches", 1), needs("vision", 0)
    ('benches need 1 GPU', 'vision needs its GPUs')
    """
    verb = "need" if whom == "benches" else "needs"
    return f"{whom} {verb} {count(gpus, 'GPU') if gpus else 'its GPUs'}"


def paused_by(who: str, reason: str) -> str:
    """Return who pauses a job, with the given reason.

    >>> paused_by("susan", ""), paused_by("root", "kernel update on node-3.")
    ('paused by susan', 'paused by root (kernel update on node-3)')
    """
    return f"paused by {who} ({reason.rstrip('.')})" if reason else f"paused by {who}"


def saving(why: str) -> str:
    """Return the state of a job that is saving before it leaves its GPUs."""
    return f"{why}: saving"


def what_was_saved(step: int | None, fraction: float | None, unsaved_s: float) -> str:
    """Return where a job that has left its GPUs saved, and what it lost.

    Args:
        step: Step of the last checkpoint, None if unknown.
        fraction: Progress at the last checkpoint, None if unknown.
        unsaved_s: Run time after it, in seconds.

    >>> what_was_saved(None, 0.629, 754)
    'saved at 62 %, 12 min lost'
    >>> what_was_saved(None, None, 3)
    'saved, nothing lost'
    """
    at = f" at step {step}" if step is not None else ""
    at = at or (f" at {percent(fraction)}" if fraction is not None else "")
    lost = "nothing" if unsaved_s < NOTHING_S else duration(unsaved_s)
    return f"saved{at}, {lost} lost"


def nothing_saved(unsaved_s: float, *, earlier: bool = False) -> str:
    """Return the same for a job that saved nothing in that attempt.

    Args:
        earlier: Whether it saved in an earlier attempt and continues from there.

    >>> nothing_saved(240), nothing_saved(240, earlier=True)
    ('nothing was saved, 4 min lost', 'nothing new was saved, 4 min lost')
    >>> nothing_saved(3)
    'it had just begun, nothing lost'
    """
    if unsaved_s < NOTHING_S:
        return "it had just begun, nothing lost"
    return f"nothing {'new ' if earlier else ''}was saved, {duration(unsaved_s)} lost"


def back(attempt: int) -> str:
    """Return that a job has resumed."""
    return f"back: attempt {attempt}"


class TimedPause(Protocol):
    """Stage of a pause, as in ``contract.PauseMoment``."""

    @property
    def stage(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def at(self) -> datetime: ...
    @property
    def until(self) -> datetime | None: ...


def pause_left(text: str, left_s: float | None) -> str:
    """Return the text of a stage with the time left to save.

    >>> pause_left("jemma needs 2 GPUs: saving", 24.6)
    'jemma needs 2 GPUs: saving, 24 s left'
    """
    if left_s is None:
        return text
    return f"{text}, {duration(left_s)} left" if left_s >= 1 else f"{text}, its time is over"


def pause_words(pause: TimedPause | None, now: datetime) -> str:
    """Return the stage of a pause; empty without one, or ``BACK_S`` after the job resumed."""
    if pause is None or (pause.stage == "back" and (now - pause.at).total_seconds() > BACK_S):
        return ""
    left_s = None if pause.until is None else (pause.until - now).total_seconds()
    return pause_left(pause.text, left_s)


def done(fraction: float, previous_progress: float | None = None, text: str = "") -> str:
    """Return the progress of a job, and that of an earlier attempt if it was larger.

    Args:
        text: Text of the job's progress report.

    >>> done(0.03, 0.63), done(0.4, 0.63, "step 400")
    ('3 %, 63 % in an earlier attempt', '40 % step 400, 63 % in an earlier attempt')
    """
    before = (
        "" if previous_progress is None else f", {percent(previous_progress)} in an earlier attempt"
    )
    return f"{f'{percent(fraction)} {text}'.strip()}{before}"


def pause_cost(
    expected_gpu_s: float, unsaved_gpu_s: float | None, restart_gpu_s: float | None
) -> str:
    """Return the cost of a pause: an estimate while the job saves, then the measured cost.

    >>> pause_cost(240, None, None)
    '4 min of one GPU (estimate)'
    >>> pause_cost(240, 2, None)
    '2 s of one GPU; its restart is measured when it resumes'
    >>> pause_cost(240, 2, 12)
    '2 s of one GPU, its restart 12 s of one GPU'
    """
    if unsaved_gpu_s is None:
        return f"{gpu_time(expected_gpu_s)} (estimate)"
    if restart_gpu_s is None:
        return f"{gpu_time(unsaved_gpu_s)}; its restart is measured when it resumes"
    return f"{gpu_time(unsaved_gpu_s)}, its restart {gpu_time(restart_gpu_s)}"
