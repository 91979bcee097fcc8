"""The telemetry database: written measurements are read back; damage affects only the record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from sqlalchemy.exc import DatabaseError

from benchpool_scheduler.errors import InvalidInput, Unavailable
from benchpool_scheduler.telemetry import (
    Database,
    HeldSample,
    HeldWorkerSample,
    Recorder,
    WorkerSample,
    schema,
)
from benchpool_scheduler.telemetry.postgresql_storage import ASIDE, SCHEMA, PostgreSql
from benchpool_scheduler.telemetry.rollup import MS, Sums, rolled
from benchpool_scheduler.telemetry.sqlite_storage import SqliteFile
from benchpool_scheduler.telemetry.storage import Storage
from benchpool_scheduler.worker.worker_id import WorkerId
from benchpool_support.clocks import FakeClock
from benchpool_support.locked_files import locked
from benchpool_support.loopback import free_port
from benchpool_support.measured import BENCH, JOB, held_samples, steady

DAY = 86_400.0
NOON = 1_700_006_400.0
"""Start of a whole hour, in seconds since the epoch."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON)


@pytest.fixture
def database(storage_again: Callable[[], Storage], clock: FakeClock) -> Iterator[Database]:
    database = Database(storage_again(), clock.now)
    database.open()
    yield database
    database.close()


def test_buckets_contain_active_and_covered_time(database: Database, clock: FakeClock) -> None:
    database.write(steady("GPU-a", NOON, NOON + 600, 0.25))
    clock.pass_s(600)
    (found,) = database.buckets(["GPU-a"], NOON, NOON + 600, 1)
    assert (found.begin, found.span_s) == (NOON, 600)
    assert (found.covered_s, found.active_s, found.energy_j) == (600.0, 150.0, 60_000.0)
    assert (found.memory_max_gib, found.simulated) == (8.0, False)


def test_gap_is_no_idle_time(database: Database, clock: FakeClock) -> None:
    database.write(steady("GPU-a", NOON, NOON + 60, 0.0))
    database.write(steady("GPU-a", NOON + 180, NOON + 240, 0.0))
    clock.pass_s(240)
    found = database.buckets(["GPU-a"], NOON, NOON + 240, 4)
    assert [(it.begin - NOON, it.covered_s) for it in found] == [(0, 60.0), (180, 60.0)]


def test_unmeasured_activity_covers_nothing(database: Database) -> None:
    database.write(steady("GPU-a", NOON - 60, NOON, None))
    (found,) = database.buckets(["GPU-a"], NOON - 60, NOON, 1)
    assert (found.covered_s, found.active_s, found.memory_max_gib) == (0.0, 0.0, 8.0)


@pytest.mark.parametrize("ago_days", [1, 10, 100])
def test_every_resolution_has_equal_sums(
    database: Database, clock: FakeClock, ago_days: int
) -> None:
    database.write(steady("GPU-a", NOON, NOON + 7200, 0.5))
    clock.pass_s(ago_days * DAY)
    found = database.buckets(None, NOON, NOON + 7200, 1000)
    assert sum(it.covered_s for it in found) == 7200.0
    assert sum(it.active_s for it in found) == 3600.0
    assert sum(it.energy_j for it in found) == 720_000.0


@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(held=held_samples)
def test_read_sums_match_written_samples(
    held: list[HeldSample], tmp_path_factory: pytest.TempPathFactory
) -> None:
    database = Database(SqliteFile(tmp_path_factory.mktemp("telemetry")), lambda: 200_000.0)
    for it in held:
        database.write([it])
    found = database.buckets(None, 0, 250_000, 100)
    kept = sum(rolled(held, 3600).values(), Sums())
    # In overlapping samples each moment counts once.
    assert sum(it.covered_s for it in found) <= kept.covered_ms / MS + 1e-6
    assert sum(it.active_s for it in found) <= sum(it.covered_s for it in found) + 1e-6
    database.close()


def test_repeated_sample_counts_once(database: Database) -> None:
    samples = steady("GPU-a", NOON - 120, NOON, 1.0)
    database.write(samples)
    database.write(samples)
    (found,) = database.buckets(None, NOON - 120, NOON, 1)
    assert found.covered_s == 120.0


def test_clock_set_back_neither_stops_nor_doubles_recording(
    storage_again: Callable[[], Storage], clock: FakeClock
) -> None:
    first = Database(storage_again(), clock.now)
    first.write(steady("GPU-a", NOON - 7200, NOON, 1.0))
    first.close()
    earlier = FakeClock(NOON - 3600)
    second = Database(storage_again(), earlier.now)
    second.open()
    second.write(steady("GPU-a", NOON - 3600, NOON - 3000, 1.0))
    found = second.buckets(None, NOON - 7200, NOON, 2)
    assert [it.covered_s for it in found] == [3600.0, 600.0]
    second.close()


def test_rows_expire_after_retention(
    database: Database, storage_again: Callable[[], Storage], clock: FakeClock
) -> None:
    database.write(steady("GPU-a", NOON, NOON + 3600, 0.5, JOB))
    engine = storage_again().connect()

    def rows(table: str) -> int:
        count = sa.select(sa.func.count()).select_from(schema.metadata.tables[table])
        with engine.connect() as connection:
            return int(connection.scalar(count) or 0)

    found = []
    for days in (1, 3, 31, 399, 402):
        clock.pass_s(NOON + days * DAY - clock.now())
        database.write(())
        found.append([rows(it) for it in ("raw", "minute", "hour", "held")])
    assert found == [[360, 60, 1, 1], [0, 60, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0]]
    database.write(steady("GPU-a", clock.now(), clock.now() + 10, 0.5, JOB))
    assert database.totals_of(JOB.job or "")
    assert database.size() > 0
    engine.dispose()


def test_job_has_own_series_and_totals_per_attempt(database: Database, clock: FakeClock) -> None:
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


@pytest.mark.expected_errors("The database of GPU measurements")
def test_damaged_file_is_set_aside_and_replaced(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "telemetry.sqlite").write_bytes(b"no database at all " * 500)
    database = Database(SqliteFile(tmp_path), clock.now)
    database.open()
    assert database.problem is not None
    assert "telemetry.sqlite.damaged" in database.problem
    database.write(steady("GPU-a", NOON - 60, NOON, 1.0))
    assert database.buckets(None, NOON - 60, NOON, 1)


@pytest.mark.expected_errors("The database of GPU measurements")
@pytest.mark.parametrize("replaced", [False, True])
def test_removed_file_is_detected_and_recreated(
    tmp_path: Path, clock: FakeClock, replaced: bool
) -> None:
    database = Database(SqliteFile(tmp_path), clock.now)
    database.write(steady("GPU-a", NOON - 120, NOON - 60, 1.0))
    for file in tmp_path.glob("telemetry.sqlite" if replaced else "telemetry.sqlite*"):
        file.unlink()
    if replaced:
        other = Database(SqliteFile(tmp_path / "other"), clock.now)
        other.open()
        other.close()
        (tmp_path / "other" / "telemetry.sqlite").rename(tmp_path / "telemetry.sqlite")
    database.write(steady("GPU-a", NOON - 60, NOON, 1.0))
    (found,) = database.buckets(None, NOON - 120, NOON, 1)
    assert found.covered_s == 60.0
    problem = database.problem or ""
    assert f"telemetry.sqlite, was {'replaced' if replaced else 'removed'} while" in problem
    database.close()
    again = Database(SqliteFile(tmp_path), clock.now)
    assert again.buckets(None, NOON - 120, NOON, 1) == [found]
    assert again.problem is None
    again.close()


def test_locked_file_is_reported_as_unavailable(tmp_path: Path, clock: FakeClock) -> None:
    database = Database(SqliteFile(tmp_path), clock.now)
    database.open()
    database.close()
    with locked(tmp_path / "telemetry.sqlite"):
        for read in (
            lambda: database.buckets(None, NOON - 120, NOON, 1),
            lambda: database.totals_of("1"),
            lambda: database.occupancies(NOON - 120, NOON),
            lambda: database.keep_occupancies([]),
        ):
            with pytest.raises(Unavailable, match="cannot be read now"):
                read()
    assert database.buckets(None, NOON - 120, NOON, 1) == []
    database.close()


@pytest.mark.expected_errors("The database of GPU measurements")
def test_layout_of_another_release_is_set_aside(tmp_path: Path, clock: FakeClock) -> None:
    with sa.create_engine(f"sqlite:///{tmp_path}/telemetry.sqlite").begin() as connection:
        connection.execute(sa.text("PRAGMA user_version = 99"))
        connection.execute(sa.text("CREATE TABLE raw (x)"))
    database = Database(SqliteFile(tmp_path), clock.now)
    database.open()
    assert "layout 99" in (database.problem or "")


@pytest.mark.expected_errors("The database of GPU measurements")
def test_server_schema_of_another_release_is_set_aside(empty_server: str, clock: FakeClock) -> None:
    storage = PostgreSql(empty_server)
    of_another_release(storage)
    database = Database(PostgreSql(empty_server), clock.now)
    database.open()
    assert database.problem is not None
    assert "layout 99, but this release supports 1" in database.problem
    assert f"It was renamed to the schema {ASIDE}" in database.problem
    assert "of-the-tests" not in database.problem, "a password"
    database.write(steady("GPU-a", NOON - 60, NOON, 1.0))
    assert database.buckets(None, NOON - 60, NOON, 1)
    database.close()


def of_another_release(storage: PostgreSql) -> None:
    engine = storage.connect()
    with engine.begin() as connection:
        layout = sa.table("layout", sa.column("number"), schema=SCHEMA)
        connection.execute(layout.update().values(number=99))
    engine.dispose()


def test_missing_server_tables_are_recreated(empty_server: str, clock: FakeClock) -> None:
    database = Database(PostgreSql(empty_server), clock.now)
    database.write(steady("GPU-a", NOON - 120, NOON - 60, 1.0))
    engine = sa.create_engine(empty_server)
    with engine.begin() as connection:
        connection.execute(sa.schema.DropSchema(SCHEMA, cascade=True))
    engine.dispose()
    later = steady("GPU-a", NOON - 60, NOON, 1.0)
    with pytest.raises(DatabaseError):
        database.write(later)
    database.write(later)
    (found,) = database.buckets(None, NOON - 120, NOON, 1)
    assert (found.covered_s, database.problem) == (60.0, None)
    database.close()


def test_closed_server_connection_loses_nothing(empty_server: str, clock: FakeClock) -> None:
    database = Database(PostgreSql(empty_server), clock.now)
    database.write(steady("GPU-a", NOON - 120, NOON - 60, 1.0))
    engine = sa.create_engine(empty_server)
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid()"
    with engine.begin() as connection:
        connection.execute(sa.text(f"{others} AND application_name = 'benchpool'"))
    engine.dispose()
    database.write(steady("GPU-a", NOON - 60, NOON, 1.0))
    assert sum(it.covered_s for it in database.buckets(None, NOON - 120, NOON, 1)) == 120.0
    database.close()


def test_samples_wait_for_unreachable_server_and_password_stays_hidden(
    clock: FakeClock,
) -> None:
    unreachable = f"postgresql+psycopg2://hub:of-the-tests@127.0.0.1:{free_port()}/postgres"
    recorder = Recorder(Database(PostgreSql(unreachable), clock.now))
    recorder.add(steady("GPU-a", NOON - 60, NOON, 1.0))
    recorder.write()
    assert "cannot be written to the schema" in (recorder.problem or "")
    assert "of-the-tests" not in (recorder.problem or "")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("db.example.org", "is invalid"),
        ("mysql://benchpool:secret@db/x", "begins with mysql://"),
        ("postgresql://benchpool:secret@db/x", "only postgresql+psycopg2:// is supported"),
    ],
)
def test_invalid_address_is_rejected_without_password(address: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)) as refused:
        PostgreSql(address)
    assert refused.value.field == "telemetry_database"
    assert "secret" not in str(refused.value)
