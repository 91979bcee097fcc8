"""One line over all attempts of a job: adding points and thinning. Pure.

A line is a tuple of points by rising step. If a later attempt begins at an older step, it replaces
the points after that step instead of drawing them twice. So the attempt never falls along a line.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MOST = 1_000
"""Maximum number of points kept in a line."""
THINNED = 750
"""Number of points after thinning; below ``MOST``, so that not every point causes a thinning."""


class Point(NamedTuple):
    """One value: the attempt that reported it, its step, and its time in epoch seconds.

    ``value`` is None if it was not a finite number.
    """

    attempt: int
    step: int
    value: float | None
    at: float


Line = tuple[Point, ...]


class Reported(NamedTuple):
    """Value reported by a worker; ``step`` is None if the worker gave none."""

    value: float | None
    at: float
    step: int | None = None


def extended(line: Line, attempt: int, reports: Iterable[Reported], most: int = MOST) -> Line:
    """Return a line with the reports of an attempt, in their order.

    - A point of a later attempt replaces all points of earlier attempts at its step or after.
    - For the same step of the same attempt, the last report counts.
    - A late report of an earlier attempt is left out where a later attempt already has points.
    - A value without a step gets the step after the last one; repeated, it changes nothing.

    >>> line = extended((), 1, [Reported(3.0, 10.0, 1), Reported(2.0, 11.0, 2)])
    >>> [(p.attempt, p.step, p.value) for p in extended(line, 2, [Reported(2.5, 20.0, 2)])]
    [(1, 1, 3.0), (2, 2, 2.5)]
    """
    points = list(line)
    for one in reports:
        _put(points, attempt, one)
        if len(points) > most:
            points[:] = thinned(points, most * THINNED // MOST)
    return tuple(points)


def _put(points: list[Point], attempt: int, report: Reported) -> None:
    if report.step is None:
        if points and report.at <= points[-1].at:
            return  # already known: a restarted service reads reports again
        step = points[-1].step + 1 if points else 0
    else:
        step = report.step
    point = Point(attempt, step, report.value, report.at)
    beyond = not points or step > points[-1].step
    place = len(points) if beyond else bisect_left(points, step, key=lambda it: it.step)
    same = place < len(points) and points[place].step == step
    governing = points[place] if same else points[place - 1] if place else None
    if governing is not None and governing.attempt > attempt:
        return
    end = place + same
    while end < len(points) and points[end].attempt < attempt:
        end += 1
    points[place:end] = [point]


def thinned(line: Sequence[Point], most: int = MOST) -> Line:
    """Return at most ``most`` points (2 or more) of a line.

    They are the first and the last point, and of equal stretches of steps the least, the greatest
    and the first value that was not a number. A stretch is the shortest sufficient power of two of
    steps, counted from step 0. So the selection depends on the points alone, and the least and the
    greatest of all are among them (of 5 points or more).

    >>> line = [Point(1, step, float(step % 10), float(step)) for step in range(100)]
    >>> [it.step for it in thinned(line, 12)]
    [0, 9, 39, 40, 69, 70, 96, 99]
    """
    if len(line) <= most:
        return tuple(line)
    exponent = _sufficient(line[0].step, line[-1].step, most - 2)
    kept = _extremes(line, exponent)
    while exponent and len(finer := _extremes(line, exponent - 1)) <= most - 2:
        kept, exponent = finer, exponent - 1
    return tuple(sorted({line[0], line[-1], *kept[: most - 2]}, key=lambda it: it.step))


def _sufficient(first: int, last: int, most: int) -> int:
    """Return an exponent so large that stretches with three points each have at most ``most``.

    >>> _sufficient(0, 999, 298), _sufficient(0, 999, 1)
    (4, 11)
    """
    fits = (it for it in range(last.bit_length()) if 3 * ((last >> it) - (first >> it) + 1) <= most)
    return next(fits, last.bit_length() + 1)


def _extremes(line: Sequence[Point], exponent: int) -> list[Point]:
    """Return the least, the greatest and the first non-number of each stretch, in order."""
    kept: set[int] = set()
    stretch, least, greatest, nothing = -1, -1, -1, -1
    low = high = 0.0
    for place, (_, step, value, _) in enumerate(line):
        if step >> exponent != stretch:
            kept.update((least, greatest, nothing))
            stretch, least, greatest, nothing = step >> exponent, -1, -1, -1
        if value is None:
            nothing = place if nothing < 0 else nothing
        elif least < 0:
            least, greatest, low, high = place, place, value, value
        elif value < low:
            least, low = place, value
        elif value > high:
            greatest, high = place, value
    kept.update((least, greatest, nothing))
    return [line[place] for place in sorted(kept - {-1})]
