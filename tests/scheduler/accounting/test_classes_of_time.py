"""Into which class a second comes."""

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


def test_a_bench_computes_while_a_kernel_runs_and_is_idle_else() -> None:
    found = classes([held(ANN, 0, 100)], [sampled(ANN, 0, 60, 15), sampled(ANN, 60, 60, 0)])
    assert found == {UseClass.COMPUTING: 15, UseClass.IDLE_BENCH: 85}


def test_what_no_sample_covers_is_not_guessed() -> None:
    found = classes([held(ANN, 0, 100)], [sampled(ANN, 0, 60, 10, covered_s=30)])
    assert found == {
        UseClass.COMPUTING: 10,
        UseClass.IDLE_BENCH: 20,
        UseClass.NOT_MEASURED: 70,
    }


def test_a_worker_is_starting_until_its_first_kernel() -> None:
    given = GpuHolder(GpuUseKind.PREPARING, "ann", "vision", "j1", 1)
    history = [held(given, 0, 20), held(JOB, 20, 200)]
    found = classes(history, [sampled(JOB, at, 60, 60 if at == 80 else 0) for at in (20, 80, 140)])
    assert found == {
        UseClass.STARTING: 20 + 60,
        UseClass.COMPUTING: 60,
        UseClass.IDLE_TRAINING: 60,
    }


def test_a_worker_without_a_first_kernel_is_idle_after_a_quarter_of_an_hour() -> None:
    found = classes([held(JOB, 0, 3600)], [sampled(JOB, at, 60, 0) for at in range(0, 3600, 60)])
    assert found == {
        UseClass.STARTING: STARTING_S,
        UseClass.IDLE_TRAINING: 3600 - STARTING_S,
    }


def test_a_range_that_begins_in_the_middle_of_a_job_does_not_see_it_start_again() -> None:
    samples = [sampled(JOB, at, 60, 60 if at == 0 else 0) for at in range(0, 600, 60)]
    found = classes([held(JOB, 0, 600)], samples, begin=300)
    assert found == {UseClass.IDLE_TRAINING: 300}


def test_work_since_the_last_save_is_lost_whatever_the_gpu_did() -> None:
    losses = [Loss("j1", 1, 100, 160), Loss("j1", 2, 0, 100)]
    found = classes([held(JOB, 0, 160)], [sampled(JOB, 0, 160, 160)], losses)
    assert found == {UseClass.COMPUTING: 100, UseClass.LOST: 60}


def test_kernels_of_an_hour_go_to_those_who_held_the_gpu_in_it() -> None:
    """A job held it for 20 minutes, then nobody, then another; the last sample is cut short."""
    free = GpuHolder(GpuUseKind.FREE)
    history = [held(JOB, 0, 1200), held(free, 1200, 3000), held(NEXT, 3000, 3600)]
    samples = [sampled(JOB, 0, 3600, 600, 1200), sampled(NEXT, 0, 3600, 500, 590)]
    by_user = totals(divide(history, samples, [], 0, FOREVER), UseBy.USER)
    assert by_user["ann"].seconds[UseClass.COMPUTING] == pytest.approx(600)
    assert by_user["joe"].seconds[UseClass.COMPUTING] == pytest.approx(500)
    assert by_user["joe"].seconds[UseClass.NOT_MEASURED] == pytest.approx(10)
    assert by_user[""].seconds == {UseClass.FREE: 1800}


def test_nobody_s_time_has_the_class_of_the_record() -> None:
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


def test_held_hours_cost_the_price_of_their_model_and_rank_the_rows() -> None:
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


def test_efficiency_is_told_only_where_multiprocessors_were_measured() -> None:
    whole = [replace(sampled(JOB, 0, 60, 30), sm_covered_s=60.0, sm_active_s=12.0)]
    for samples, expected in ((whole, 12 / 30), ([sampled(JOB, 0, 60, 30)], None)):
        found = totals(divide([held(JOB, 0, 60)], samples, [], 0, FOREVER), UseBy.USER)
        assert found["ann"].efficiency == expected


def test_samples_of_another_holder_are_not_taken_for_one_s_own() -> None:
    found = classes([held(JOB, 0, 60)], [sampled(NEXT, 0, 60, 60), sampled(ANN, 0, 60, 60)])
    assert found == {UseClass.NOT_MEASURED: 60}


def test_a_clock_that_was_set_back_counts_no_second_twice() -> None:
    history = [held(ANN, 0, 100), held(JOB, 60, 160), held(NEXT, 70, 90)]
    found = classes(history, [])
    assert found == {UseClass.NOT_MEASURED: 160}
