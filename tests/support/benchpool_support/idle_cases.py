"""Scripted days at a bench, and the minute when it should be released.

A line of the file is ``name | minute or never | events``. The events are stretches of minutes, one
after the other, of these words.

====== ========================================================================== gpu    a cell
computes on the GPU cpu    a cell is busy and the GPU is not shell  a program runs in a terminal
cells  a short cell runs on the CPU every ten minutes and at the end rest   nothing runs; the page
may be open and the GPU's memory full blip   nothing runs; a sample now and then is at half a per
cent gap    no samples of the GPU arrive mute   the notebook server does not report the state of its
kernels dark   neither is known, and a cell may run kept   the owner keeps the bench; exempt: an
exemption holds asleep the machine sleeps, so there are no observations jump   the clock is set
ahead by these minutes, in no time; back: back ======
==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.core.benches.idle import (
    IdleLadder,
    IdleStep,
    IdleWatch,
    Sighting,
    looked,
)

FILE = Path(__file__).parents[2] / "scheduler" / "core" / "idle_cases.txt"
LOOK_S = 30.0
LATE_MIN = 1.5
"""Allowed delay of the due time, in minutes; observations are half a minute apart."""

EXECUTED_EVERY = 20
"""Observations between two short cells."""


@dataclass(frozen=True)
class IdleCase:
    """One day: minutes of each word, and the minute when the bench is due, or None for never."""

    name: str
    due: float | None
    story: Sequence[tuple[str, float]]

    @property
    def kind(self) -> str:
        """The subject of the case: its name without the number."""
        return self.name.rpartition("-")[0]


@dataclass(frozen=True)
class IdleVerdict:
    """Result of a case: the minute when the bench was due, or None for never."""

    case: IdleCase
    due: float | None

    @property
    def is_false(self) -> bool:
        """Return whether the bench was released too early or should have been kept."""
        if self.due is None:
            return False
        return self.case.due is None or self.due < self.case.due - 1e-9

    @property
    def is_missed(self) -> bool:
        """Return whether the bench should have been released and was not, or was released late."""
        if self.case.due is None:
            return False
        return self.due is None or self.due > self.case.due + LATE_MIN


def cases(file: Path = FILE) -> Iterator[IdleCase]:
    """Yield the cases of the file."""
    for line in file.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, due, story = (part.strip() for part in line.split("|"))
            stretches = [part.split() for part in story.split(",")]
            yield IdleCase(
                name,
                None if due == "never" else float(due),
                [(word, float(minutes)) for word, minutes in stretches],
            )


def judged(
    case: IdleCase,
    ladder: IdleLadder = IdleLadder(),  # noqa: B008 (frozen)
    through: Callable[[Sighting], Sighting] = lambda seen: seen,
) -> IdleVerdict:
    """Play a case and return when its bench was first due; ``through`` alters each observation."""
    watch = IdleWatch()
    for minute, seen in sightings(case.story):
        watch = looked(watch, through(seen), ladder)
        if watch.step is IdleStep.DUE:
            return IdleVerdict(case, minute)
    return IdleVerdict(case, None)


def sightings(story: Sequence[tuple[str, float]]) -> Iterator[tuple[float, Sighting]]:
    """Yield the observations of a bench, each with the minute since the beginning."""
    real_s, offset_s = 0.0, 0.0
    for word, minutes in story:
        if word in ("jump", "back"):
            offset_s += minutes * 60 if word == "jump" else -minutes * 60
            continue
        if word == "asleep":
            real_s += minutes * 60
            continue
        looks = round(minutes * 60 / LOOK_S)
        for number in range(looks):
            real_s += LOOK_S
            executed = word == "cells" and number in (*range(0, looks, EXECUTED_EVERY), looks - 1)
            yield real_s / 60, _seen(word, real_s + offset_s, number, executed)


def _seen(word: str, at: float, number: int, executed: bool) -> Sighting:
    measured = word not in ("gap", "dark")
    share = {"gpu": 0.8, "blip": 0.005 if number % 4 == 0 else 0.0}.get(word, 0.0)
    working: bool | None = word in ("gpu", "cpu", "shell")
    return Sighting(
        at=at,
        measured_s=LOOK_S if measured else 0.0,
        activity=share if measured else None,
        working=None if word in ("mute", "dark") else working,
        executed=executed,
        spared=word in ("kept", "exempt"),
    )
