"""Ranges that hold: how far estimates of starts were off, and what is said of the next ones (R22).

A forecast knows nothing of what is still to be submitted or cancelled, so its bounds alone are no
promise. Here every estimate that was said is held against the start that came. When a start comes
before what was said, the next ranges like it begin earlier; when none does, later by
about a tenth of that; the same for the late bound. So in the long run no more than one start in ten
comes before its range and one after it (quantile tracking: A. Angelopoulos, E. Candes, R.
Tibshirani, "Conformal PID control for time series prediction", 2023). This is done apart for how
far the start seems to be and for what the estimate rests on, since these are off by different
amounts.

An estimate of a job that is cancelled says nothing, unless its range was over by then. A job's
estimate is counted once for each horizon, and again only after as long as it spoke of: readers look
at all times, and one long wait should not count a thousandfold. All is bounded; no clock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchpool_scheduler.core.forecast.forecast import BasisKind, Estimate

HORIZONS = (600.0, 3600.0, 21_600.0, math.inf)
"""Estimates are counted by their likely start: up to so many seconds."""
INSIDE = 0.8
"""The part of starts that falls into its range: what is promised."""
OUTSIDE = 0.08
"""The part that is to come before what is said, and the part after it: a little less than promised,
since a pool changes faster than it is learned."""
STEP = 0.01
"""By how much one surprise moves a bound, in logarithms of seconds. Small: after a long wait
hundreds start at once, and all were told the same before the first could teach anything."""
FURTHEST = 4.0
"""No bound is moved further than by this; the wrong way no further than by ``BACK``."""
BACK = 1.0
NEWEST = 1000
"""Of each horizon and basis so many of the newest starts are told."""
SHORT_S = 60.0
"""A difference of less than this is none: times are compared with this much added."""
LEAST_S = 30.0
"""No range ends earlier than this."""
MOST_FOLLOWED = 16
"""Of one job so many of the newest estimates are held against its start."""
AGAIN_S = 600.0
"""An estimate of the same job is not counted again before so long a time is over."""

AT_FIRST: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    BasisKind.LEARNED: ((0.5, 0.35, 0.12, 0.05), (2.0, 2.0, 2.0, 2.0)),
    BasisKind.TIME_LIMIT: ((0.02, 0.02, 0.02, 0.02), (1.0, 1.0, 1.0, 1.0)),
    BasisKind.RULES: ((1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0)),
}
"""By which factor the early and the late bound are moved before anything is known, by horizon: as
the recorded workloads had it. A time limit and a rule are late bounds already."""

Cell = tuple[str, int]
"""What an estimate rests on, and its horizon."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """An estimate that was told, until the start comes.

    Attributes:
        at_s: When it was said, on any clock that the start is told on too.
        cell: Where it counts.
        earliest_s, latest_s: What was said, from ``at_s`` on.
    """

    at_s: float
    cell: Cell
    earliest_s: float
    latest_s: float


class CalibrationRow(NamedTuple):
    """How true estimates of one horizon were: of so many starts, how many fell where."""

    up_to_s: float
    starts: int
    inside: int
    before: int

    @property
    def after(self) -> int:
        """Return how many came later than was said."""
        return self.starts - self.inside - self.before


class CalibrationCell(NamedTuple):
    """What is kept of one basis and horizon, e.g. as JSON.

    Attributes:
        low, high: The logarithms by which bounds are moved.
        outcomes: Of the newest starts, oldest first: ``i`` inside, ``b`` before, ``a`` after.
    """

    kind: str
    horizon: int
    low: float
    high: float
    outcomes: str


@dataclass(slots=True)
class _Tracked:
    low: float
    high: float
    outcomes: deque[str]

    def count(self, waited_s: float, said: Prediction, *, told: bool) -> None:
        before, after = waited_s < said.earliest_s - 1, waited_s > said.latest_s + 1
        self.low = min(BACK, max(-FURTHEST, self.low - STEP * (before - OUTSIDE)))
        self.high = max(-BACK, min(FURTHEST, self.high + STEP * (after - OUTSIDE)))
        if told:
            self.outcomes.append("b" if before else "a" if after else "i")


class Calibration:
    """What is known of the errors of estimates. It changes only by ``learn``.

    Args:
        newest: So many starts of each basis and horizon are told; None for all.

    Attributes:
        telling: What comes of estimates is told in ``rows``; else it only teaches.
    """

    def __init__(self, newest: int | None = NEWEST) -> None:
        self._newest = newest
        self.telling = True
        self._tracked = {
            (str(kind), horizon): _Tracked(math.log(low), math.log(high), deque(maxlen=newest))
            for kind, (lows, highs) in AT_FIRST.items()
            for horizon, (low, high) in enumerate(zip(lows, highs, strict=True))
        }

    def range_of(self, estimate: Estimate, at_s: float) -> Prediction | None:
        """Return what is to be said: a range that holds four times in five; None without one.

        >>> from benchpool_scheduler.core.forecast.forecast import Basis
        >>> known = Calibration()
        >>> raw = Estimate(300.0, 400.0, 500.0, basis=Basis(BasisKind.LEARNED, "pool", 9))
        >>> known.range_of(raw, 0.0)
        Prediction(at_s=0.0, cell=('learned', 0), earliest_s=120.0, latest_s=1060.0)
        >>> for _ in range(1000):
        ...     known.learn(known.range_of(raw, 0.0), 300.0)
        >>> said = known.range_of(raw, 0.0)
        >>> round(said.earliest_s), round(said.latest_s)
        (299, 443)
        """
        likely = estimate.likely_s
        if likely is None or estimate.basis is None:
            return None
        low = likely if estimate.earliest_s is None else estimate.earliest_s
        high = likely if estimate.latest_s is None else estimate.latest_s
        cell = (estimate.basis.kind.value, _horizon(likely))
        tracked = self._tracked[cell]
        latest = max(LEAST_S, _moved(high, tracked.high))
        return Prediction(at_s, cell, min(_moved(low, tracked.low), latest), latest)

    def learn(self, said: Prediction, started_s: float) -> None:
        """Count what was said of a job that starts, on the clock of ``Prediction.at_s``."""
        self._tracked[said.cell].count(max(0.0, started_s - said.at_s), said, told=self.telling)

    def rows(self) -> list[CalibrationRow]:
        """Return how true the newest estimates were, by horizon."""
        found = []
        for number, up_to in enumerate(HORIZONS):
            told = [of.outcomes for (_, at), of in self._tracked.items() if at == number]
            inside, before = (sum(it.count(sign) for it in told) for sign in "ib")
            found.append(CalibrationRow(up_to, sum(map(len, told)), inside, before))
        return found

    def summary(self) -> tuple[CalibrationCell, ...]:
        """Return all that was learned."""
        return tuple(
            CalibrationCell(*cell, it.low, it.high, "".join(it.outcomes))
            for cell, it in sorted(self._tracked.items())
            if it.outcomes
        )

    def restore(self, summary: Iterable[CalibrationCell]) -> None:
        """Take up what ``summary`` told; what this version does not know is left out."""
        for kind, horizon, low, high, outcomes in summary:
            if (kind, horizon) in self._tracked:
                kept = deque(outcomes, maxlen=self._newest)
                self._tracked[kind, horizon] = _Tracked(low, high, kept)


def _horizon(seconds: float) -> int:
    """Return the position among ``HORIZONS`` of a time from now.

    >>> _horizon(600.0), _horizon(601.0), _horizon(1e9)
    (0, 1, 3)
    """
    return next(number for number, up_to in enumerate(HORIZONS) if seconds <= up_to)


def _moved(bound_s: float, by: float) -> float:
    """Return a bound that is moved by the logarithm of a quotient; never before now."""
    return round(max(0.0, (bound_s + SHORT_S) * math.exp(by) - SHORT_S), 3)


class FollowedEstimates:
    """What was said of jobs that still wait, until each starts or is taken back."""

    def __init__(self, calibration: Calibration) -> None:
        self.calibration = calibration
        self._open: dict[str, list[Prediction]] = {}

    def follow(self, job: str, said: Prediction) -> None:
        """Remember what is said of a job now, where it is to be counted."""
        followed = self._open.setdefault(job, [])
        alike = [one for one in followed if one.cell[1] == said.cell[1]]
        if not alike or said.at_s - alike[-1].at_s >= max(AGAIN_S, alike[-1].latest_s):
            followed.append(said)
            del followed[:-MOST_FOLLOWED]

    def started(self, job: str, at_s: float) -> bool:
        """A job starts now: learn from all that was said of it; tell whether there was anything."""
        return self._learn(self._open.pop(job, ()), at_s)

    def gone(self, job: str, at_s: float) -> bool:
        """A job waits no more and has not started: only a range that is over counts."""
        over = [it for it in self._open.pop(job, ()) if at_s - it.at_s > it.latest_s + 1]
        return self._learn(over, at_s)

    def _learn(self, told: Sequence[Prediction], at_s: float) -> bool:
        for said in told:
            self.calibration.learn(said, at_s)
        return bool(told)
