"""The telemetry database: what is read is what was measured; damage costs the record, no more."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings

from benchpool_scheduler.telemetry import Database, HeldSample, HeldWorkerSample, WorkerSample
from benchpool_scheduler.telemetry.rollup import MS, Sums, rolled
from benchpool_scheduler.worker.worker_id import WorkerId
from benchpool_support.clocks import FakeClock
from benchpool_support.measured import BENCH, JOB, held_samples, steady

DAY = 86_400.0
NOON = 1_700_006_400.0
"""A whole hour."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON)


@pytest.fixture
def database(tmp_path: Path, clock: FakeClock) -> Database:
    database = Database(tmp_path, clock.now)
    database.open()
    return database


def test_buckets_say_what_was_active_and_what_was_covered(
    database: Database, clock: FakeClock
) -> None:
    database.write(steady("GPU-a", NOON, NOON + 600, 0.25))
    clock.pass_s(600)
    (found,) = database.buckets(["GPU-a"], NOON, NOON + 600, 1)
    assert (found.begin, found.span_s) == (NOON, 600)
    assert (found.covered_s, found.active_s, found.energy_j) == (600.0, 150.0, 60_000.0)
    assert (found.memory_max_gib, found.simulated) == (8.0, False)


def test_a_gap_is_a_gap_and_no_idle_time(database: Database, clock: FakeClock) -> None:
    database.write(steady("GPU-a", NOON, NOON + 60, 0.0))
    database.write(steady("GPU-a", NOON + 180, NOON + 240, 0.0))
    clock.pass_s(240)
    found = database.buckets(["GPU-a"], NOON, NOON + 240, 4)
    assert [(it.begin - NOON, it.covered_s) for it in found] == [(0, 60.0), (180, 60.0)]


def test_activity_that_was_not_measured_covers_nothing(database: Database) -> None:
    database.write(steady("GPU-a", NOON - 60, NOON, None))
    (found,) = database.buckets(["GPU-a"], NOON - 60, NOON, 1)
    assert (found.covered_s, found.active_s, found.memory_max_gib) == (0.0, 0.0, 8.0)


@pytest.mark.parametrize("ago_days", [1, 10, 100])
def test_every_age_has_the_same_sums(database: Database, clock: FakeClock, ago_days: int) -> None:
    database.write(steady("GPU-a", NOON, NOON + 7200, 0.5))
    clock.pass_s(ago_days * DAY)
    found = database.buckets(None, NOON, NOON + 7200, 1000)
    assert sum(it.covered_s for it in found) == 7200.0
    assert sum(it.active_s for it in found) == 3600.0
    assert sum(it.energy_j for it in found) == 720_000.0


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(held=held_samples)
def test_what_is_read_adds_up_to_what_was_written(
    held: list[HeldSample], tmp_path_factory: pytest.TempPathFactory
) -> None:
    database = Database(tmp_path_factory.mktemp("telemetry"), lambda: 200_000.0)
    for it in held:
        database.write([it])
    found = database.buckets(None, 0, 250_000, 100)
    kept = sum(rolled(held, 3600).values(), Sums())
    # Of samples that lie over each other a moment counts once.
    assert sum(it.covered_s for it in found) <= kept.covered_ms / MS + 1e-6
    assert sum(it.active_s for it in found) <= sum(it.covered_s for it in found) + 1e-6
    database.close()


def test_a_moment_counts_once_whatever_comes_twice(database: Database) -> None:
    samples = steady("GPU-a", NOON - 120, NOON, 1.0)
    database.write(samples)
    database.write(samples)
    (found,) = database.buckets(None, NOON - 120, NOON, 1)
    assert found.covered_s == 120.0


def test_a_clock_that_was_set_back_neither_stops_the_record_nor_counts_twice(
    tmp_path: Path, clock: FakeClock
) -> None:
    first = Database(tmp_path, clock.now)
    first.write(steady("GPU-a", NOON - 7200, NOON, 1.0))
    first.close()
    earlier = FakeClock(NOON - 3600)
    second = Database(tmp_path, earlier.now)
    second.open()
    second.write(steady("GPU-a", NOON - 3600, NOON - 3000, 1.0))
    found = second.buckets(None, NOON - 7200, NOON, 2)
    assert [it.covered_s for it in found] == [3600.0, 600.0]


def test_rows_are_kept_for_their_time_and_no_longer(database: Database, clock: FakeClock) -> None:
    database.write(steady("GPU-a", NOON, NOON + 3600, 0.5, JOB))

    def rows(table: str) -> int:
        with sa.create_engine(f"sqlite:///{database.file}").connect() as connection:
            return int(connection.scalar(sa.text(f"SELECT count(*) FROM {table}")) or 0)  # noqa: S608

    found = []
    for days in (1, 3, 31, 399, 402):
        clock.pass_s(NOON + days * DAY - clock.now())
        database.write(())
        found.append([rows(it) for it in ("raw", "minute", "hour", "held")])
    assert found == [[360, 60, 1, 1], [0, 60, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0]]
    database.write(steady("GPU-a", clock.now(), clock.now() + 10, 0.5, JOB))
    assert database.totals_of(JOB.job or "")


def test_a_job_has_a_series_of_its_own_and_totals_for_each_attempt(
    database: Database, clock: FakeClock
) -> None:
    database.write(steady("GPU-a", NOON, NOON + 300, 0.0, BENCH))
    database.write(steady("GPU-a", NOON + 300, NOON + 600, 1.0, JOB))
    database.write(steady("GPU-b", NOON, NOON + 600, 1.0))
    clock.pass_s(900)
    job = JOB.job or ""
    series = database.series_of(job, at_most=5)
    assert {it.holder for it in series} == {JOB}
    assert sum(it.active_s for it in series) == 300.0
    (total,) = database.totals_of(job)
    assert (total.gpu, total.covered_s, total.active_s) == ("GPU-a", 300.0, 300.0)
    assert (total.begin, total.span_s) == (NOON + 300, 300)
    by_holder = database.buckets(["GPU-a"], NOON, NOON + 600, 1, by_holder=True)
    assert {it.holder: it.active_s for it in by_holder} == {BENCH: 0.0, JOB: 300.0}


def test_workers_are_summed_by_attempt(database: Database) -> None:
    worker = WorkerId(JOB.job or "", 1, 0)
    database.write(
        (),
        [
            HeldWorkerSample(
                WorkerSample(worker, NOON + at, 10, 5.0, 4.0, 1.0, peak, 100, None), JOB
            )
            for at, peak in ((10, 2.0), (20, 3.0))
        ],
    )
    (total,) = database.workers_of(JOB.job or "")
    assert (total.cpu_s, total.cpus, total.covered_s, total.memory_peak_gib) == (10, 4, 20, 3)
    assert (total.read_bytes, total.written_bytes) == (200, None)


@pytest.mark.expected_errors("The record of what GPUs did")
def test_a_damaged_file_is_set_aside_and_another_begun(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "telemetry.sqlite").write_bytes(b"no database at all " * 500)
    database = Database(tmp_path, clock.now)
    database.open()
    assert database.problem is not None
    assert "telemetry.sqlite.damaged" in database.problem
    database.write(steady("GPU-a", NOON - 60, NOON, 1.0))
    assert database.buckets(None, NOON - 60, NOON, 1)


@pytest.mark.expected_errors("The record of what GPUs did")
def test_a_layout_of_another_release_is_set_aside(tmp_path: Path, clock: FakeClock) -> None:
    with sa.create_engine(f"sqlite:///{tmp_path}/telemetry.sqlite").begin() as connection:
        connection.execute(sa.text("PRAGMA user_version = 99"))
        connection.execute(sa.text("CREATE TABLE raw (x)"))
    database = Database(tmp_path, clock.now)
    database.open()
    assert "layout 99" in (database.problem or "")
