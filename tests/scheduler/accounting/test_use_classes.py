"""Classification of GPU time into use classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchpool_scheduler.accounting.classes import GpuUseKind
from benchpool_scheduler.accounting.division import STARTING_S, divide
from benchpool_scheduler.accounting.gpu_intervals import GpuHolder, GpuInterval, Loss
from benchpool_scheduler.accounting.totals import totals
from benchpool_scheduler.contract.use import UseBy, UseClass
from benchpool_support.gpu_histories import Measured, MeasuredHolder

FOREVER = 100_000.0
ANN = GpuHolder(GpuUseKind.BENCH, user="ann", bench="l1")
JOB = GpuHolder(GpuUseKind.TRAINING, "ann", "vision", "j1", 1)
NEXT = GpuHolder(GpuUseKind.TRAINING, "joe", "speech", "j2", 1)


def held(occupant: GpuHolder, begin: float, end: float, gpu: str = "g") -> GpuInterval:
    return GpuInterval(gpu, "n", "H200", begin, end, occupant)


def sampled(
    of: GpuHolder, begin: float, span_s: float, active_s: float, covered_s: float | None = None
) -> Measured:
    holder = MeasuredHolder(of.job or None, of.attempt or None, of.bench or None)
    covered_s = span_s if covered_s is None else covered_s
    return Measured("g", begin, span_s, covered_s, active_s, 300.0, holder=holder)


def classes(
    history: list[GpuInterval],
    activity: list[Measured],
    losses: list[Loss] | None = None,
    begin: float = 0.0,
    end: float = FOREVER,
) -> dict[UseClass, Any]:
    entries = divide(history, activity, losses or [], begin, end)
    found = totals(entries, UseBy.CLASS)[""].seconds
    return {one: pytest.approx(seconds) for one, seconds in found.items() if seconds > 1e-9}


def test_bench_computes_during_kernels_and_idles_otherwise() -> None:
    found = classes([held(ANN, 0, 100)], [sampled(ANN, 0, 60, 15), sampled(ANN, 60, 60, 0)])
    assert found == {UseClass.COMPUTING: 15, UseClass.IDLE_BENCH: 85}


def test_unsampled_time_is_not_measured() -> None:
    found = classes([held(ANN, 0, 100)], [sampled(ANN, 0, 60, 10, covered_s=30)])
    assert found == {
        UseClass.COMPUTING: 10,
        UseClass.IDLE_BENCH: 20,
        UseClass.NOT_MEASURED: 70,
    }


def test_worker_is_starting_until_first_kernel() -> None:
    given = GpuHolder(GpuUseKind.PREPARING, "ann", "vision", "j1", 1)
    history = [held(given, 0, 20), held(JOB, 20, 200)]
    found = classes(history, [sampled(JOB, at, 60, 60 if at == 80 else 0) for at in (20, 80, 140)])
    assert found == {
        UseClass.STARTING: 20 + 60,
        UseClass.COMPUTING: 60,
        UseClass.IDLE_TRAINING: 60,
    }


def test_worker_without_kernel_is_idle_after_15_minutes() -> None:
    found = classes([held(JOB, 0, 3600)], [sampled(JOB, at, 60, 0) for at in range(0, 3600, 60)])
    assert found == {
        UseClass.STARTING: STARTING_S,
        UseClass.IDLE_TRAINING: 3600 - STARTING_S,
    }


def test_range_beginning_within_job_has_no_starting_time() -> None:
    samples = [sampled(JOB, at, 60, 60 if at == 0 else 0) for at in range(0, 600, 60)]
    found = classes([held(JOB, 0, 600)], samples, begin=300)
    assert found == {UseClass.IDLE_TRAINING: 300}


def test_work_since_last_checkpoint_is_lost() -> None:
    losses = [Loss("j1", 1, 100, 160), Loss("j1", 2, 0, 100)]
    found = classes([held(JOB, 0, 160)], [sampled(JOB, 0, 160, 160)], losses)
    assert found == {UseClass.COMPUTING: 100, UseClass.LOST: 60}


def test_kernel_time_is_charged_to_current_holder() -> None:
    """A job holds the GPU for 20 minutes, then it is free, then another job holds it.

    The last sample is cut short.
    """
    free = GpuHolder(GpuUseKind.FREE)
    history = [held(JOB, 0, 1200), held(free, 1200, 3000), held(NEXT, 3000, 3600)]
    samples = [sampled(JOB, 0, 3600, 600, 1200), sampled(NEXT, 0, 3600, 500, 590)]
    by_user = totals(divide(history, samples, [], 0, FOREVER), UseBy.USER)
    assert by_user["ann"].seconds[UseClass.COMPUTING] == pytest.approx(600)
    assert by_user["joe"].seconds[UseClass.COMPUTING] == pytest.approx(500)
    assert by_user["joe"].seconds[UseClass.NOT_MEASURED] == pytest.approx(10)
    assert by_user[""].seconds == {UseClass.FREE: 1800}


def test_unheld_time_keeps_recorded_class() -> None:
    kinds = {
        GpuUseKind.FREE: UseClass.FREE,
        GpuUseKind.WANTED: UseClass.WANTED,
        GpuUseKind.RESERVED: UseClass.RESERVED,
        GpuUseKind.FOREIGN: UseClass.FOREIGN,
        GpuUseKind.BROKEN: UseClass.BROKEN,
        GpuUseKind.UNRECORDED: UseClass.NOT_RECORDED,
    }
    history = [
        held(GpuHolder(kind), number * 10, number * 10 + 10) for number, kind in enumerate(kinds)
    ]
    assert classes(history, [sampled(GpuHolder(GpuUseKind.FREE), 0, 60, 60)]) == dict.fromkeys(
        kinds.values(), 10
    )


def test_held_hours_cost_model_price_and_rank_rows() -> None:
    history = [
        held(ANN, 0, 3600),
        held(GpuHolder(GpuUseKind.FREE), 3600, 7200),
        held(JOB, 0, 7200, gpu="h"),
    ]
    entries = divide(history, [sampled(ANN, 0, 3600, 0)], [], 0, FOREVER)
    by_project = totals(entries, UseBy.PROJECT, {"H200": 2.5})
    assert list(by_project) == ["vision", ""]
    assert by_project["vision"].cost == pytest.approx(5.0)
    assert by_project[""].cost == pytest.approx(2.5)
    assert by_project[""].energy_j == pytest.approx(300)
    assert by_project["vision"].coverage == 0.0
    assert by_project[""].coverage == 1.0


def test_efficiency_requires_measured_multiprocessors() -> None:
    whole = [replace(sampled(JOB, 0, 60, 30), sm_covered_s=60.0, sm_active_s=12.0)]
    for samples, expected in ((whole, 12 / 30), ([sampled(JOB, 0, 60, 30)], None)):
        found = totals(divide([held(JOB, 0, 60)], samples, [], 0, FOREVER), UseBy.USER)
        assert found["ann"].efficiency == expected


def test_samples_of_another_holder_are_ignored() -> None:
    found = classes([held(JOB, 0, 60)], [sampled(NEXT, 0, 60, 60), sampled(ANN, 0, 60, 60)])
    assert found == {UseClass.NOT_MEASURED: 60}


def test_clock_set_back_counts_no_second_twice() -> None:
    history = [held(ANN, 0, 100), held(JOB, 60, 160), held(NEXT, 70, 90)]
    found = classes(history, [])
    assert found == {UseClass.NOT_MEASURED: 160}
