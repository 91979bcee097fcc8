"""A file and a server store the same data, for all writes and reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.accounting.classes import GpuUseKind
from benchpool_scheduler.accounting.gpu_intervals import GpuHolder, GpuInterval
from benchpool_scheduler.telemetry import Database, HeldSample, HeldWorkerSample, WorkerSample
from benchpool_scheduler.telemetry.postgresql_storage import SCHEMA, PostgreSql
from benchpool_scheduler.telemetry.sqlite_storage import SqliteFile
from benchpool_scheduler.telemetry.storage import Storage
from benchpool_scheduler.worker.worker_id import WorkerId
from benchpool_support.measured import BENCH, JOB, held_samples

NOW = 200_000.0
amounts = st.none() | st.integers(0, 2**40)
workers = st.lists(
    st.builds(
        HeldWorkerSample,
        st.builds(
            WorkerSample,
            st.just(WorkerId(JOB.job or "", 1, 0)),
            st.floats(1_000, NOW),
            st.floats(0, 100),
            st.floats(0, 100),
            st.floats(0, 64),
            st.floats(0, 512),
            st.none() | st.floats(0, 512),
            amounts,
            amounts,
        ),
        st.sampled_from([JOB, BENCH]),
    ),
    max_size=4,
)
occupants = st.builds(
    GpuHolder,
    st.sampled_from(GpuUseKind),
    user=st.sampled_from(["susan", "tom"]),
    attempt=st.integers(0, 3),
)
intervals = st.lists(
    st.builds(
        GpuInterval,
        st.sampled_from(["GPU-a", "GPU-b"]),
        st.just("node-1"),
        st.just("H100"),
        st.integers(0, 10).map(float),
        st.integers(11, 20).map(float),
        occupants,
    ),
    max_size=6,
)


def read(
    storage: Storage,
    written: Sequence[tuple[list[HeldSample], list[HeldWorkerSample]]],
    occupied: list[GpuInterval],
) -> list[object]:
    database = Database(storage, lambda: NOW)
    for samples, of_workers in written:
        database.write(samples, of_workers)
    database.keep_occupancies(occupied)
    job, bench = JOB.job or "", BENCH.bench or ""
    found = [
        database.buckets(None, 0, NOW, 100),
        database.buckets(None, NOW - 3600, NOW, 100),
        database.buckets(["GPU-a"], NOW - 100_000, NOW, 300, by_holder=True),
        database.series_of(job),
        database.totals_of(job),
        database.totals_of_bench(bench),
        database.workers_of(job),
        sorted(database.occupancies(0, NOW), key=lambda it: (it.gpu, it.begin)),
        sorted(database.newest_occupancies(), key=lambda it: it.gpu),
        sorted(database.xids(0, NOW, 50), key=lambda it: (it.gpu, it.at)),
    ]
    database.close()
    return [[repr(it) for it in some] for some in found]


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.tuples(held_samples, workers), max_size=3), intervals)
def test_server_and_file_store_same_data(
    tmp_path_factory: pytest.TempPathFactory,
    server: str,
    written: list[tuple[list[HeldSample], list[HeldWorkerSample]]],
    occupied: list[GpuInterval],
) -> None:
    engine = sa.create_engine(server)
    with engine.begin() as connection:
        connection.execute(sa.schema.DropSchema(SCHEMA, cascade=True, if_exists=True))
    engine.dispose()
    in_file = read(SqliteFile(tmp_path_factory.mktemp("file")), written, occupied)
    on_server = read(PostgreSql(server), written, occupied)
    assert on_server == in_file


def test_server_and_file_open_with_current_schema(tmp_path: Path, empty_server: str) -> None:
    for storage in (SqliteFile(tmp_path), PostgreSql(empty_server)):
        for _ in range(2):
            database = Database(storage, lambda: NOW)
            database.open()
            assert database.problem is None
            database.close()
