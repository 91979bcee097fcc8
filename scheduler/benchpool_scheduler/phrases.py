"""The words of every screen for numbers, times, states and ends; pure, standard library only.

Pages, command line, refusals, the spawner and the notebook side say them as they stand here. The
JupyterLab extension and the pages' scripts are held to the same table of examples
(``tests/phrases.json``). Tables are by the values on the wire; a test holds each enumeration
against its table.

>>> duration(42), duration(754), duration(11100), duration(129600)
('42 s', '12 min', '3 h 5 min', '1 d 12 h')
>>> count(1, "GPU"), count(4, "GPU"), gpus_of_job(4, 2)
('1 GPU', '4 GPUs', '8 GPUs (2 × 4)')
>>> attempt_end("preempt", 143)
'paused for others, exit code 143'
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Protocol

NOT_KNOWN = "not known yet"
"""What is said in place of an estimate while there is none."""

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
"""Of jobs."""

GPU_STATES: Mapping[str, str] = MappingProxyType(
    {
        "train-within-quota": "train, within quota",
        "train-over-quota": "train, over quota",
        "build-held": "bench, in use",
        "build-free": "bench, kept free",
        "free": "free",
        "foreign": "used by others",
        "broken": "broken",
    }
)
"""Of GPUs, in the order of a legend: from work to trouble."""

ENDS: Mapping[str, str] = MappingProxyType(
    {
        "itself": "ended by itself",
        "preempt": "paused for others",
        "pause": "paused by its user",
        "cancel": "cancelled",
        "notice": "stopped after a notice",
        "time-limit": "stopped at its time limit",
        "out-of-memory": "ran out of memory",
        "could-not-start": "could not start",
        "not-taken": "not taken by its node; nothing ran",
        "machine-fault": "not started for a fault of the machine; nothing ran",
        "no-room": "not let in by a quota of the cluster; nothing ran",
        "lost": "lost with its machine; not counted as a failure",
    }
)
"""How an attempt, or a worker, ended."""


def count(number: float, noun: str) -> str:
    """Return a number with its noun.

    >>> count(0, "job"), count(0.5, "GPU")
    ('0 jobs', '0.5 GPUs')
    """
    figure = str(number) if isinstance(number, int) else f"{number:g}"
    return f"{figure} {noun}" if number == 1 else f"{figure} {noun}s"


def is_are(number: object) -> str:
    """Return the verb for a number.

    >>> is_are(1), is_are(0)
    ('is', 'are')
    """
    return "is" if number == 1 else "are"


def ordinal(number: int) -> str:
    """Return the place in a line.

    >>> ordinal(1), ordinal(12), ordinal(23)
    ('1st', '12th', '23rd')
    """
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def gpus_of_job(gpus: int, workers: int) -> str:
    """Return the GPUs of a whole job; ``gpus`` are those of one worker."""
    if workers == 1:
        return count(gpus, "GPU")
    return f"{count(gpus * workers, 'GPU')} ({workers} × {gpus})"


def duration(seconds: float) -> str:
    """Return a length of time in whole units, at most two of them; negative counts as zero.

    What has not passed yet is not said: 119 s are ``1 min``.
    """
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def data_size(count: int) -> str:
    """Return bytes as people read them.

    >>> data_size(5), data_size(3 * 1024 * 1024)
    ('5 bytes', '3.0 MiB')
    """
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{count} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def gpu_time(gpu_seconds: float) -> str:
    """Return an amount of work in GPU seconds, e.g. what a pause lost.

    >>> gpu_time(5400)
    '1 h 30 min of one GPU'
    """
    return f"{duration(gpu_seconds)} of one GPU"


def at_most(seconds: float) -> str:
    """Return a bound on a length of time: as ``duration``, but rounded up.

    >>> at_most(12.2), at_most(119), at_most(86401)
    ('13 s', '2 min', '1 d 1 h')
    """
    step = 1 if seconds <= 60 else 60 if seconds <= 86_400 else 3600
    return duration(math.ceil(seconds / step) * step)


def steady_bound(seconds: float) -> str:
    """Return a bound on a time from now, rounded up so far that it stands for a while.

    >>> [steady_bound(seconds) for seconds in (7, 61, 2400, 5000, 100_000, 900_000)]
    ['10 s', '2 min', '40 min', '1 h 25 min', '1 d 4 h', '11 d']
    """
    steps = ((60, 10), (600, 60), (7200, 300), (2e5, 3600))
    step = next((step for most, step in steps if seconds <= most), 86_400)
    return duration(max(1, math.ceil(seconds / step)) * step)


def ago(seconds: float) -> str:
    """Return how long ago something was; negative lies ahead.

    >>> ago(2), ago(754), ago(-300)
    ('just now', '12 min ago', 'in 5 min')
    """
    if abs(seconds) < 5:
        return "just now"
    return f"{duration(seconds)} ago" if seconds > 0 else f"in {duration(-seconds)}"


def start_in(earliest: float | None, likely: float | None, latest: float | None) -> str | None:
    """Return an estimated start, each in seconds from now, as a range; None: nothing is known.

    >>> start_in(300, 480, 720), start_in(3000, None, 7800), start_in(None, 480, None)
    ('in 5–12 min', 'in 50 min to 2 h 10 min', 'in about 8 min')
    """
    if latest is not None:
        return _range(earliest, latest)
    if likely is not None:
        return f"in about {duration(likely)}"
    if earliest is None or earliest < 1:
        return None
    return f"in {duration(earliest)} or later"


class Estimated(Protocol):
    """An estimated start as the wire has it."""

    @property
    def earliest(self) -> datetime | None: ...
    @property
    def likely(self) -> datetime | None: ...
    @property
    def latest(self) -> datetime | None: ...


def start_range(start: Estimated | None, now: datetime) -> str:
    """Return an estimated start as a range from now, or that it is not known yet (R22)."""
    if start is None:
        return NOT_KNOWN
    earliest, likely, latest = (
        None if at is None else (at - now).total_seconds()
        for at in (start.earliest, start.likely, start.latest)
    )
    return start_in(earliest, likely, latest) or NOT_KNOWN


def _range(earliest: float | None, latest: float) -> str:
    if latest < 5:
        return "any moment"
    last = at_most(latest)
    if earliest is None or earliest < 1:
        return f"within {last}"
    first = duration(earliest)
    if first == last:
        return f"in about {last}"
    number, _, unit = first.partition(" ")
    if unit == last.partition(" ")[2] and " " not in unit:
        return f"in {number}–{last}"
    return f"in {first} to {last}"


def failed_with(exit_code: int) -> str:
    """Return how a failed job ended."""
    return f"ended with exit code {exit_code}"


def attempt_end(ended_by: str | None, exit_code: int | None) -> str:
    """Return how an attempt ended; ``ended_by`` is the word of the wire, None where unknown."""
    words = "ended" if ended_by is None else ENDS.get(ended_by, ended_by)
    return words if exit_code is None else f"{words}, exit code {exit_code}"


def changed(before: Mapping[str, object], after: Mapping[str, object], reason: str = "") -> str:
    """Say what a record of the audit trail changed, and why.

    >>> changed({"priority": 50}, {"priority": 70}, "a deadline")
    'priority 50 → 70 (a deadline)'
    >>> changed({}, {"state": "queued", "name": "fit"}), changed({}, {}, "There is no such job.")
    ('state queued, name fit', 'There is no such job.')
    >>> changed({"tags": ""}, {"tags": "a, b", "preemptible": True, "missing": ""})
    'tags none → a, b, preemptible yes'
    """
    told = ", ".join(
        f"{name} {_plain(before[name])} → {_plain(after.get(name))}"
        if name in before
        else f"{name} {_plain(after[name])}"
        for name in dict.fromkeys([*after, *before])
        if name in before or after[name] not in (None, "")
    )
    return f"{told} ({reason})" if told and reason else told or reason


def _plain(value: object) -> str:
    """Return a value of a record as a person writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value in (None, "") else str(value)


UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Categories of signs that are not seen, or change how others are seen: control signs (ESC and C1
too), marks that turn the direction of writing, signs without width, line separators."""


def visible(text: str) -> str:
    r"""Return a user's text with every sign seen: one that could deceive stands as its number.

    >>> visible("loss 0.5"), visible("a\x1b[31mb"), visible("invoice\u202efdp.exe")
    ('loss 0.5', 'a\\x1b[31mb', 'invoice\\u202efdp.exe')
    >>> visible("Träume 🚀"), visible("zero\u200bwidth")
    ('Träume 🚀', 'zero\\u200bwidth')
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        sign.encode("unicode_escape").decode() if unicodedata.category(sign) in UNSEEN else sign
        for sign in text
    )
