"""Calibrated ranges of estimated starts: four of five starts fall into them (R22)."""

from __future__ import annotations

import random

import pytest

from benchpool_scheduler.core.forecast.calibration import (
    AGAIN_S,
    INSIDE,
    Calibration,
    CalibrationRow,
    FollowedEstimates,
)
from benchpool_scheduler.core.forecast.forecast import Basis, BasisKind, Estimate

LEARNED = Basis(BasisKind.LEARNED, "pool", 9)


def estimate(likely_s: float, spread: float = 1.5) -> Estimate:
    return Estimate(likely_s / spread, likely_s, likely_s * spread, basis=LEARNED)


def row_of(known: Calibration, up_to_s: float) -> CalibrationRow:
    return next(row for row in known.rows() if row.up_to_s == up_to_s)


@pytest.mark.parametrize("bias", [0.05, 0.4, 1.0, 3.0])
@pytest.mark.parametrize(
    "likely_s", [300.0, 2000.0, 10_000.0, 100_000.0], ids=["10min", "1h", "6h", "longer"]
)
def test_four_of_five_starts_fall_into_range(bias: float, likely_s: float) -> None:
    chance, known = random.Random(1), Calibration()
    hits = []
    for _ in range(4000):
        interval = known.range_of(estimate(likely_s), 0.0)
        assert interval is not None
        waited = likely_s * bias * chance.lognormvariate(0, 0.7)
        hits.append(interval.earliest_s - 1 <= waited <= interval.latest_s + 1)
        known.learn(interval, waited)
    newest = hits[1500:]
    assert sum(newest) / len(newest) >= INSIDE
    assert sum(newest) / len(newest) <= 0.93  # a range that always holds is useless


def test_ranges_narrow_for_accurate_forecasts() -> None:
    known = Calibration()
    interval = known.range_of(estimate(1800.0), 0.0)
    for _ in range(3000):
        assert interval is not None
        known.learn(interval, 1800.0)
        interval = known.range_of(estimate(1800.0), 0.0)
    assert interval is not None
    assert interval.latest_s - interval.earliest_s < 600


def test_estimate_is_absent_without_knowledge() -> None:
    assert Calibration().range_of(Estimate(5.0, None, None), 0.0) is None


def test_rule_bound_is_not_calibrated() -> None:
    raw = Estimate(0.0, 7200.0, 7200.0, basis=Basis(BasisKind.RULES))
    interval = Calibration().range_of(raw, 0.0)
    assert interval is not None
    assert (interval.earliest_s, interval.latest_s) == (0.0, 7200.0)


def test_cancelled_job_counts_only_after_its_range() -> None:
    known = Calibration()
    followed = FollowedEstimates(known)
    interval = known.range_of(estimate(300.0), 0.0)
    assert interval is not None
    followed.follow("a", interval)
    followed.follow("b", interval)
    assert not followed.gone("a", 10.0)
    assert followed.gone("b", interval.latest_s + 60)
    assert row_of(known, 600.0) == CalibrationRow(600.0, 1, 0, 0)


def test_long_wait_is_not_counted_repeatedly() -> None:
    known = Calibration()
    followed = FollowedEstimates(known)
    for at in range(0, 3600, 10):
        interval = known.range_of(estimate(300.0), float(at))
        assert interval is not None
        followed.follow("a", interval)
    followed.started("a", 3600.0)
    assert row_of(known, 600.0).starts <= 3600 / AGAIN_S


def test_calibration_survives_as_plain_data() -> None:
    known, again = Calibration(), Calibration()
    for waited in (10.0, 300.0, 5000.0):
        interval = known.range_of(estimate(300.0), 0.0)
        assert interval is not None
        known.learn(interval, waited)
    again.restore(known.summary())
    assert again.summary() == known.summary()
    assert again.rows() == known.rows()
    assert again.range_of(estimate(300.0), 0.0) == known.range_of(estimate(300.0), 0.0)
