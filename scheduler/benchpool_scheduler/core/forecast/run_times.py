"""Run times of jobs, learned from ended jobs (R14, R22).

Each kind of job has a histogram of run times on a logarithmic scale. A query is answered from the
most specific kind that has enough examples, in this order:

- jobs of the same user, project, series of names and size;
- jobs of the same user, project and series;
- jobs of the same user, project and size;
- jobs of the project;
- jobs of the pool.

The answer counts only examples that ran longer than the job has run already. The estimate for a
long job therefore grows with its run time.

All sizes are bounded: kinds (the least recently updated are dropped), examples (a full histogram is
halved, so that old examples fade) and buckets. Results depend only on the order of ``learn``. There
is no clock.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from benchpool_scheduler.errors import InvalidInput

PER_OCTAVE = 8
"""Number of buckets between a run time and its double. Each is 9 % wide."""
ENOUGH = 4.0
"""Least number of longer examples for an answer."""
FULL = 128.0
"""Number of examples at which a histogram is halved."""
FADED = 1 / 16
"""Weight below which a bucket is dropped."""
MOST_KINDS = (2048, 2048, 2048, 1024, 1)
"""Limit on kinds per level, from the most specific level to the whole pool."""
LEVELS = ("user-name-size", "user-name", "user-size", "project", "pool")
LOW, LIKELY, HIGH = 0.25, 0.5, 0.9

Kind = tuple[str, ...]
Summary = list[list[tuple[list[str], list[tuple[int, float, float]]]]]


@dataclass(frozen=True, slots=True)
class Expectation:
    """Total run time of a job given its run time so far, in seconds.

    Attributes:
        low_s, likely_s, high_s: Quantiles of 25, 50 and 90 %, ordered.
        level: Level of the kind it was learned from, one of ``LEVELS``.
        examples: Number of examples. Faded ones count in part.
    """

    low_s: float
    likely_s: float
    high_s: float
    level: str = "pool"
    examples: float = 0.0

    def capped(self, longest_s: float | None) -> Expectation:
        """Return the expectation with all times capped, e.g. by a time limit."""
        if longest_s is None:
            return self
        low, likely, high = (min(s, longest_s) for s in (self.low_s, self.likely_s, self.high_s))
        return Expectation(low, likely, high, self.level, self.examples)


class RunTimeBucket(NamedTuple):
    """Examples of nearly the same run time: their number, and the sum of their seconds."""

    number: float
    sum_s: float

    @property
    def mean_s(self) -> float:
        """Return the mean run time, in seconds."""
        return self.sum_s / self.number


class Histogram:
    """Run times of one kind of job."""

    __slots__ = ("buckets", "count")

    def __init__(self) -> None:
        self.buckets: dict[int, RunTimeBucket] = {}
        self.count = 0.0

    def add(self, ran_s: float) -> None:
        """Count one example. A full histogram is halved first."""
        if self.count >= FULL:
            self._fade()
        index = math.floor(math.log2(max(ran_s, 1.0)) * PER_OCTAVE)
        count, sum_s = self.buckets.get(index, (0.0, 0.0))
        self.buckets[index] = RunTimeBucket(count + 1.0, sum_s + ran_s)
        self.count += 1.0

    def _fade(self) -> None:
        halves = {i: RunTimeBucket(b.number / 2, b.sum_s / 2) for i, b in self.buckets.items()}
        self.buckets = {i: b for i, b in halves.items() if b.number >= FADED}
        self.count = sum(bucket.number for bucket in self.buckets.values())

    def longer_than(self, ran_s: float) -> list[RunTimeBucket]:
        """Return the buckets of examples that ran longer, shortest first."""
        return [b for _, b in sorted(self.buckets.items()) if b.mean_s > ran_s]


class RunTimes:
    """Learned run times. Only ``learn`` changes them."""

    def __init__(self) -> None:
        self._levels: tuple[dict[Kind, Histogram], ...] = tuple({} for _ in LEVELS)

    def learn(self, user: str, project: str, name: str, gpus: int, ran_s: float) -> None:
        """Learn the run time of a job that ended by itself, over all its attempts.

        Args:
            gpus: GPUs of all its workers.
            ran_s: Run time in seconds. Work that a pause lost and that was repeated counts once.

        Raises:
            InvalidInput: The run time is negative or not finite.
        """
        if not 0 <= ran_s < math.inf:
            raise InvalidInput(f"a job cannot have run {ran_s} s; give 0 or more seconds")
        kinds = _kinds(user, project, name, gpus)
        for table, most, kind in zip(self._levels, MOST_KINDS, kinds, strict=True):
            histogram = table.pop(kind, None) or Histogram()
            histogram.add(ran_s)
            table[kind] = histogram  # newest last
            if len(table) > most:
                del table[next(iter(table))]

    def expect(
        self,
        user: str,
        project: str,
        name: str,
        gpus: int,
        ran_so_far_s: float = 0.0,
        time_limit_s: float | None = None,
    ) -> Expectation | None:
        """Return the total run time of a job, given its run time so far.

        Returns None if no similar job is known, or none ran that long. The end is then unknown,
        except for a time limit, which is left to the caller.

        >>> known = RunTimes()
        >>> for seconds in (60, 60, 600, 600, 600, 600):
        ...     known.learn("susan", "vision", "train 1", 1, seconds)
        >>> known.expect("susan", "vision", "train 2", 1).low_s
        60.0
        >>> known.expect("susan", "vision", "train 2", 1, ran_so_far_s=100).low_s
        600.0
        >>> known.expect("joe", "vision", "other", 8, time_limit_s=300)
        Expectation(low_s=60.0, likely_s=300, high_s=300, level='project', examples=6.0)
        """
        kinds = _kinds(user, project, name, gpus)
        for level, table, kind in zip(LEVELS, self._levels, kinds, strict=True):
            if (histogram := table.get(kind)) is None:
                continue
            longer = histogram.longer_than(ran_so_far_s)
            examples = sum(bucket.number for bucket in longer)
            if examples >= ENOUGH:
                low, likely, high = _quantiles(longer, examples)
                return Expectation(low, likely, high, level, examples).capped(time_limit_s)
        return None

    def summary(self) -> Summary:
        """Return the learned state as lists, strings and numbers, e.g. for JSON."""
        return [
            [
                (list(kind), [(i, *bucket) for i, bucket in sorted(histogram.buckets.items())])
                for kind, histogram in table.items()
            ]
            for table in self._levels
        ]

    @classmethod
    def of(cls, summary: Summary) -> RunTimes:
        """Return the run times from a ``summary``."""
        found = cls()
        for table, rows in zip(found._levels, summary, strict=True):
            for kind, buckets in rows:
                histogram = table[tuple(kind)] = Histogram()
                histogram.buckets = {i: RunTimeBucket(count, sum_s) for i, count, sum_s in buckets}
                histogram.count = sum(bucket.number for bucket in histogram.buckets.values())
        return found


def _kinds(user: str, project: str, name: str, gpus: int) -> tuple[Kind, ...]:
    """Return the kinds of a job, from the most specific to the most general, as in ``LEVELS``."""
    series = series_of(name)
    return (
        (user, project, series, str(gpus)),
        (user, project, series),
        (user, project, str(size_class(gpus))),
        (project,),
        (),
    )


def series_of(name: str) -> str:
    """Return a name with its numbers replaced, so that runs of one experiment form one series.

    >>> series_of("train-lr0.01-run12")
    'train-lr#.#-run#'
    """
    return re.sub(r"\d+", "#", name)


def size_class(gpus: int) -> int:
    """Return the smallest power of two that is at least ``gpus``, or 0.

    >>> [size_class(gpus) for gpus in (0, 1, 3, 8, 9)]
    [0, 1, 4, 8, 16]
    """
    return 1 << (gpus - 1).bit_length() if gpus > 0 else 0


def _quantiles(buckets: list[RunTimeBucket], examples: float) -> Iterator[float]:
    """Yield the low, likely and high quantile, each as the mean of its bucket."""
    wanted = iter((LOW, LIKELY, HIGH))
    rank = next(wanted)
    below = 0.0
    for bucket in buckets:
        below += bucket.number
        while below >= rank * examples * (1 - 1e-12):
            yield bucket.mean_s
            if (rank := next(wanted, math.inf)) == math.inf:
                return
