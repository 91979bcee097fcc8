"""Python session of a user with a real pool."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool import handles
from benchpool_support.own_kernels import KernelSession, own_kernel
from benchpool_support.serving import Served, served


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("pool") / "state") as running:
        yield running


@pytest.fixture
def susan(pool: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Log in as susan in a new working folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setenv("BENCHPOOL_URL", pool.url)
    monkeypatch.setenv("BENCHPOOL_TOKEN", "susan")
    monkeypatch.chdir(folder)
    handles.disconnect()
    yield folder
    handles.disconnect()


@pytest.fixture
def session(pool: Served, susan: Path) -> Iterator[KernelSession]:
    env = {**os.environ, "JPY_SESSION_NAME": "some/where/book.ipynb"}
    with own_kernel(env, susan) as client:
        yield KernelSession(client)
