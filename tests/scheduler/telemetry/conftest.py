"""Every driver that works without a GPU."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from benchpool_scheduler.telemetry.postgresql_storage import ASIDE, SCHEMA, PostgreSql
from benchpool_scheduler.telemetry.sqlite_storage import SqliteFile
from benchpool_scheduler.telemetry.storage import Storage
from benchpool_support import fake_driver, postgresql
from benchpool_support.nvml import ScriptedLibrary
from benchpool_support.nvml_drivers import Driver, Scripted


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> fake_driver.FakeDriver:
    return fake_driver.build(tmp_path_factory.mktemp("driver"))


@pytest.fixture(params=["script", "library in C"])
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Driver:
    if request.param == "script":
        library = ScriptedLibrary([])
        library.install(monkeypatch)
        return Scripted(library)
    found: fake_driver.FakeDriver = request.getfixturevalue("built")
    found.set_gpus([])
    found.install(monkeypatch)
    return found


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a PostgreSQL database, which tests share."""
    if postgresql.INITDB is None:
        pytest.skip(postgresql.MISSING)
    log = tmp_path_factory.mktemp("postgresql") / "log"
    with tempfile.TemporaryDirectory(prefix="benchpool-postgresql-") as folder:
        for url in postgresql.serving(Path(folder), log):
            postgresql.answers(url)
            yield url


@pytest.fixture
def empty_server(server: str) -> str:
    """Address of the database, without benchpool's schemas."""
    engine = sa.create_engine(server)
    with engine.begin() as connection:
        for name in (SCHEMA, ASIDE):
            connection.execute(sa.schema.DropSchema(name, cascade=True, if_exists=True))
    engine.dispose()
    return server


@pytest.fixture(params=["file", "server"])
def storage_again(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Storage]:
    """Return a factory of storages for one place: empty at first, of each kind."""
    if request.param == "file":
        return lambda: SqliteFile(tmp_path)
    url: str = request.getfixturevalue("empty_server")
    return lambda: PostgreSql(url)
