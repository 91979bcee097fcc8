"""A driver library without a GPU, for the tests of parking."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.runtime.local.parking.libcuda_driver import LibcudaDriver
from benchpool_support import scripted_cuda
from benchpool_support.scripted_cuda import ScriptedMachine


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the library."""
    folder = scripted_cuda.compiled(tmp_path_factory.mktemp("cuda"))
    if folder is None:
        pytest.skip("no C compiler (gcc or cc): the driver's library cannot be played")
    return folder


@pytest.fixture
def machine(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedMachine:
    """Machine whose processes load the library."""
    place = tmp_path / "driver"
    place.mkdir()
    for name, value in scripted_cuda.environment(place, library).items():
        monkeypatch.setenv(name, value)
    return ScriptedMachine(place)


@pytest.fixture
def driver(machine: ScriptedMachine) -> Iterator[LibcudaDriver]:
    """Real driver port, whose process loads the library."""
    assert machine.place.is_dir()
    with LibcudaDriver() as driver:
        yield driver
