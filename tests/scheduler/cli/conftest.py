"""The command line against a real service, in a project folder of its own."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchpool_scheduler import cli
from benchpool_support.serving import Served, served


@dataclass(frozen=True)
class CommandResult:
    """Result of one command line."""

    status: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.raw)


Benchpool = Callable[..., CommandResult]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "state") as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The user's current folder."""
    project = tmp_path / "project"
    project.mkdir()
    return project


@pytest.fixture
def environ(service: Served, tmp_path: Path) -> Mapping[str, str]:
    """The environment of susan's terminal."""
    return {
        "BENCHPOOL_URL": service.url,
        "BENCHPOOL_TOKEN": "susan",
        "BENCHPOOL_STATE": str(tmp_path / "none"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }


@pytest.fixture
def benchpool(
    folder: Path, environ: Mapping[str, str], capfdbinary: pytest.CaptureFixture[bytes]
) -> Benchpool:
    """Run a command line as susan, or as another user with ``by``."""

    def run(*words: str, by: str = "susan") -> CommandResult:
        capfdbinary.readouterr()
        status = cli.run(words, {**environ, "BENCHPOOL_TOKEN": by}, folder)
        out, err = capfdbinary.readouterr()
        return CommandResult(status, out, err.decode())

    return run
