"""Calibration of start estimates: ranges are corrected by the errors of earlier estimates (R22).

A forecast does not include future submissions and cancellations, so its bounds alone are not
reliable. Here every published estimate is compared with the actual start. A start before its range
makes the next similar ranges begin earlier. A start that is not before its range makes them begin
later, by about a tenth of that. The late bound is treated in the same way. In the long run at most
one start in ten comes before its range, and at most one after it (quantile tracking: A.
Angelopoulos, E. Candes, R. Tibshirani, "Conformal PID control for time series prediction", 2023).
Each horizon and each basis of an estimate has its own correction, since their errors differ.

An estimate of a cancelled job counts only if its range had passed by then. A job's estimate counts
once per horizon, and again only after the time that it predicted. Readers poll often, and one long
wait should not count a thousand times. All sizes are bounded. There is no clock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchpool_scheduler.core.forecast.forecast import BasisKind, Estimate

HORIZONS = (600.0, 3600.0, 21_600.0, math.inf)
"""Upper bounds of the horizons by which estimates are counted, in seconds to the likely start."""
INSIDE = 0.8
"""Promised share of starts that fall in their range."""
OUTSIDE = 0.08
"""Target share of starts before the range, and of starts after it.

It is a little less than promised, since a pool changes faster than it is learned.
"""
STEP = 0.01
"""Change of a bound per surprise, in logarithms of seconds.

It is small because after a long wait hundreds of jobs start at once. All of them had the same
estimate before the first could correct it.
"""
FURTHEST = 4.0
"""Largest shift of a bound outward, as a logarithm. ``BACK`` is the largest shift inward."""
BACK = 1.0
NEWEST = 1000
"""Number of newest starts reported, per horizon and basis."""
SHORT_S = 60.0
"""Time added before bounds are compared, in seconds, so that shorter differences do not count."""
LEAST_S = 30.0
"""Earliest end of a range, in seconds."""
MOST_FOLLOWED = 16
"""Limit on estimates of one job that are compared with its start. The newest count."""
AGAIN_S = 600.0
"""Least time between two counted estimates of the same job, in seconds."""

AT_FIRST: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    BasisKind.LEARNED: ((0.5, 0.35, 0.12, 0.05), (2.0, 2.0, 2.0, 2.0)),
    BasisKind.TIME_LIMIT: ((0.02, 0.02, 0.02, 0.02), (1.0, 1.0, 1.0, 1.0)),
    BasisKind.RULES: ((1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0)),
}
"""Initial factors for the early and the late bound, by horizon, from recorded workloads.

A time limit and a rule are late bounds already.
"""

Cell = tuple[str, int]
"""Basis and horizon of an estimate."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A published estimate that is followed until the job starts.

    Attributes:
        at_s: Time of publication, on the same clock as the start.
        cell: Basis and horizon.
        earliest_s, latest_s: Published range, from ``at_s`` on.
    """

    at_s: float
    cell: Cell
    earliest_s: float
    latest_s: float


class CalibrationRow(NamedTuple):
    """Accuracy of the estimates of one horizon: starts in total, inside and before the range."""

    up_to_s: float
    starts: int
    inside: int
    before: int

    @property
    def after(self) -> int:
        """Return how many starts came after their range."""
        return self.starts - self.inside - self.before


class CalibrationCell(NamedTuple):
    """State of one basis and horizon, e.g. for JSON.

    Attributes:
        low, high: Logarithms by which the bounds are shifted.
        outcomes: Newest starts, oldest first: ``i`` inside, ``b`` before, ``a`` after.
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

    def count(self, waited_s: float, prediction: Prediction, *, record: bool) -> None:
        before, after = waited_s < prediction.earliest_s - 1, waited_s > prediction.latest_s + 1
        self.low = min(BACK, max(-FURTHEST, self.low - STEP * (before - OUTSIDE)))
        self.high = max(-BACK, min(FURTHEST, self.high + STEP * (after - OUTSIDE)))
        if record:
            self.outcomes.append("b" if before else "a" if after else "i")


class Calibration:
    """Learned errors of estimates. Only ``learn`` changes them.

    Args:
        newest: Number of starts reported per basis and horizon, or None for all.

    Attributes:
        recording: Outcomes are counted in ``rows``. Otherwise they only shift the bounds.
    """

    def __init__(self, newest: int | None = NEWEST) -> None:
        self._newest = newest
        self.recording = True
        self._tracked = {
            (str(kind), horizon): _Tracked(math.log(low), math.log(high), deque(maxlen=newest))
            for kind, (lows, highs) in AT_FIRST.items()
            for horizon, (low, high) in enumerate(zip(lows, highs, strict=True))
        }

    def range_of(self, estimate: Estimate, at_s: float) -> Prediction | None:
        """Return the range to publish, which holds four times in five, or None without an estimate.

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

    def learn(self, prediction: Prediction, started_s: float) -> None:
        """Count a published estimate of a job that starts, on the clock of ``Prediction.at_s``."""
        self._tracked[prediction.cell].count(
            max(0.0, started_s - prediction.at_s), prediction, record=self.recording
        )

    def rows(self) -> list[CalibrationRow]:
        """Return the accuracy of the newest estimates, by horizon."""
        found = []
        for number, up_to in enumerate(HORIZONS):
            outcomes = [of.outcomes for (_, at), of in self._tracked.items() if at == number]
            inside, before = (sum(it.count(sign) for it in outcomes) for sign in "ib")
            found.append(CalibrationRow(up_to, sum(map(len, outcomes)), inside, before))
        return found

    def summary(self) -> tuple[CalibrationCell, ...]:
        """Return the learned state."""
        return tuple(
            CalibrationCell(*cell, it.low, it.high, "".join(it.outcomes))
            for cell, it in sorted(self._tracked.items())
            if it.outcomes
        )

    def restore(self, summary: Iterable[CalibrationCell]) -> None:
        """Load a ``summary``. Entries that this version does not support are skipped."""
        for kind, horizon, low, high, outcomes in summary:
            if (kind, horizon) in self._tracked:
                kept = deque(outcomes, maxlen=self._newest)
                self._tracked[kind, horizon] = _Tracked(low, high, kept)


def _horizon(seconds: float) -> int:
    """Return the index in ``HORIZONS`` of a time from now.

    >>> _horizon(600.0), _horizon(601.0), _horizon(1e9)
    (0, 1, 3)
    """
    return next(number for number, up_to in enumerate(HORIZONS) if seconds <= up_to)


def _moved(bound_s: float, by: float) -> float:
    """Return a bound shifted by a logarithm, at least 0."""
    return round(max(0.0, (bound_s + SHORT_S) * math.exp(by) - SHORT_S), 3)


class FollowedEstimates:
    """Published estimates of waiting jobs, until each job starts or is cancelled."""

    def __init__(self, calibration: Calibration) -> None:
        self.calibration = calibration
        self._open: dict[str, list[Prediction]] = {}

    def follow(self, job: str, prediction: Prediction) -> None:
        """Record a published estimate of a job, if it is to be counted."""
        followed = self._open.setdefault(job, [])
        alike = [one for one in followed if one.cell[1] == prediction.cell[1]]
        if not alike or prediction.at_s - alike[-1].at_s >= max(AGAIN_S, alike[-1].latest_s):
            followed.append(prediction)
            del followed[:-MOST_FOLLOWED]

    def started(self, job: str, at_s: float) -> bool:
        """Learn from all estimates of a job that starts. Return whether there were any."""
        return self._learn(self._open.pop(job, ()), at_s)

    def gone(self, job: str, at_s: float) -> bool:
        """Learn from expired estimates of a job that left unstarted. Return whether it had any."""
        over = [it for it in self._open.pop(job, ()) if at_s - it.at_s > it.latest_s + 1]
        return self._learn(over, at_s)

    def _learn(self, predictions: Sequence[Prediction], at_s: float) -> bool:
        for prediction in predictions:
            self.calibration.learn(prediction, at_s)
        return bool(predictions)
