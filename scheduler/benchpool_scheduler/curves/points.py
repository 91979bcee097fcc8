"""One line over all attempts of a job: how points join it, and how it is thinned. Pure.

A line is a tuple of points by rising step. Where a later attempt begins again at an older step, the
points that came after that step are rolled back: they are not drawn twice. So attempts never fall
along a line.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MOST = 1_000
"""Points of a line that are kept."""
THINNED = 750
"""A line that would have more than ``MOST`` is thinned to at most so many: not at every point."""


class Point(NamedTuple):
    """One value: which attempt reported it, at which step, and when (epoch seconds).

    ``value`` is None where it was no finite number.
    """

    attempt: int
    step: int
    value: float | None
    at: float


Line = tuple[Point, ...]


class Reported(NamedTuple):
    """A value as a worker told it; ``step`` is None where it named none."""

    value: float | None
    at: float
    step: int | None = None


def extended(line: Line, attempt: int, told: Iterable[Reported], most: int = MOST) -> Line:
    """Return a line with what an attempt told, one after the other.

    - A point of a later attempt takes the place of all that earlier ones told at its step or after.
    - The same step of the same attempt: what was told last counts.
    - What an earlier attempt tells late, where a later one has been already, is left out.
    - A value without a step follows the last one, by one; told again, it changes nothing.

    >>> line = extended((), 1, [Reported(3.0, 10.0, 1), Reported(2.0, 11.0, 2)])
    >>> [(p.attempt, p.step, p.value) for p in extended(line, 2, [Reported(2.5, 20.0, 2)])]
    [(1, 1, 3.0), (2, 2, 2.5)]
    """
    points = list(line)
    for one in told:
        _put(points, attempt, one)
        if len(points) > most:
            points[:] = thinned(points, most * THINNED // MOST)
    return tuple(points)


def _put(points: list[Point], attempt: int, told: Reported) -> None:
    if told.step is None:
        if points and told.at <= points[-1].at:
            return  # it is known: a worker's words are read again after a restart of the service
        step = points[-1].step + 1 if points else 0
    else:
        step = told.step
    point = Point(attempt, step, told.value, told.at)
    place = bisect_left(points, step, key=lambda it: it.step)
    same = place < len(points) and points[place].step == step
    governing = points[place] if same else points[place - 1] if place else None
    if governing is not None and governing.attempt > attempt:
        return
    end = place + same
    while end < len(points) and points[end].attempt < attempt:
        end += 1
    points[place:end] = [point]


def thinned(line: Sequence[Point], most: int = MOST) -> Line:
    """Return at most ``most`` points of a line, 2 or more: the first, the last, and of equal
    stretches of steps the least, the greatest and the first that was no number.

    A stretch is the shortest power of two of steps that suffices, counted from step 0. So what is
    kept depends on the points alone, and the least and the greatest of all are among them (of 5
    points or more).

    >>> line = [Point(1, step, float(step % 10), float(step)) for step in range(100)]
    >>> [it.step for it in thinned(line, 12)]
    [0, 9, 39, 40, 69, 70, 96, 99]
    """
    if len(line) <= most:
        return tuple(line)
    exponent = bisect_left(
        range(line[-1].step.bit_length() + 1),
        True,
        key=lambda it: len(_extremes(line, 2**it)) <= most - 2,
    )
    kept = _extremes(line, 2**exponent)[: most - 2]
    return tuple(sorted({line[0], line[-1], *kept}, key=lambda it: it.step))


def _extremes(line: Sequence[Point], width: int) -> list[Point]:
    """Return of each stretch the least, the greatest and the first that is no number, in order."""
    kept: set[int] = set()
    stretch, least, greatest, nothing = -1, -1, -1, -1
    for place, point in enumerate(line):
        if point.step // width != stretch:
            kept.update((least, greatest, nothing))
            stretch, least, greatest, nothing = point.step // width, -1, -1, -1
        if point.value is None:
            nothing = place if nothing < 0 else nothing
        elif least < 0:
            least = greatest = place
        elif point.value < _value(line, least):
            least = place
        elif point.value > _value(line, greatest):
            greatest = place
    kept.update((least, greatest, nothing))
    return [line[place] for place in sorted(kept - {-1})]


def _value(line: Sequence[Point], place: int) -> float:
    value = line[place].value
    return 0.0 if value is None else value
