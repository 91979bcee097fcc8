"""Kernel whose Python lacks benchpool, of a real notebook server with a real pool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import pytest

from benchpool_scheduler.service import Caller
from benchpool_support import live_kernels
from benchpool_support.notebook_server import NotebookServer, notebook_server
from benchpool_support.other_pythons import add_kernel, other_python
from benchpool_support.serving import Served, served

SECRET = "servers-own-token-0123456789"

Run = Callable[[str], Awaitable[str]]


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("pool") / "state") as running:
        people = dict(running.identity.people)
        running.identity.people = {**people, SECRET: Caller("susan")}
        yield running


@pytest.fixture(scope="module")
def server(pool: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookServer]:
    folder = tmp_path_factory.mktemp("server")
    add_kernel(folder / "data", "bare", other_python(folder / "env", with_kernel=True))
    environ = {"BENCHPOOL_URL": pool.url, "JUPYTERHUB_API_TOKEN": SECRET}
    with notebook_server(folder, environ) as running:
        yield running


@pytest.fixture
def run(server: NotebookServer) -> Iterator[Run]:
    """Run a cell in a new kernel without benchpool, and return what it printed."""
    kernel = live_kernels.start(server.page, "bare", "book.ipynb")
    yield partial(live_kernels.run, server.page, kernel)
    server.page.delete(f"api/kernels/{kernel}")
