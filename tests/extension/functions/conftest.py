"""Kernel sessions of a user with a real pool."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from benchpool import handles
from benchpool_support.own_kernels import own_kernel
from benchpool_support.serving import Served, served


class Session:
    """Kernel session that returns the output of each cell."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client

    def run(self, code: str) -> str:
        """Run a cell; return what it printed, returned or raised."""
        output: list[str] = []

        def take(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "error":
                output.append(f"{content['ename']}: {content['evalue']}")
            output.append(content.get("text", ""))
            output.append(content.get("data", {}).get("text/plain", ""))

        self.client.execute_interactive(code, output_hook=take, timeout=120)
        return "".join(output)


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
def session(susan: Path) -> Iterator[Session]:
    with own_kernel({**os.environ, "JPY_SESSION_NAME": "lab/book.ipynb"}, susan) as client:
        yield Session(client)
