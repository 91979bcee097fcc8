"""Real notebook server with a real pool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.service import Caller
from benchpool_support.notebook_server import NotebookServer, notebook_server
from benchpool_support.serving import Served, served

SECRET = "servers-own-token-0123456789"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("pool") / "state") as running:
        people = dict(running.identity.people)
        running.identity.people = {**people, SECRET: Caller("susan")}
        yield running


@pytest.fixture(scope="module")
def server(pool: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookServer]:
    environ = {"BENCHPOOL_URL": pool.url, "JUPYTERHUB_API_TOKEN": SECRET}
    with notebook_server(tmp_path_factory.mktemp("server"), environ) as running:
        yield running


@pytest.fixture
def lonely(tmp_path: Path) -> Iterator[NotebookServer]:
    """Yield a notebook server whose pool does not respond."""
    environ = {"BENCHPOOL_URL": "http://127.0.0.1:9/services/benchpool"}
    with notebook_server(tmp_path, {**environ, "JUPYTERHUB_API_TOKEN": SECRET}) as running:
        yield running
