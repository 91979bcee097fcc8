"""The environment of a run is read from its results, and foreign files there are ignored."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import msgspec
import pytest

from benchpool_scheduler.contract.run_environment import NAME, Package, RunEnvironment
from benchpool_scheduler.service.jobs.run_records import recorded

RUN = RunEnvironment(
    job="a" * 26,
    attempt=1,
    python="CPython 3.11.2",
    platform="Linux",
    packages=[Package("numpy", "2.1.0")],
    driver=None,
    cuda=None,
    image=None,
    commit=None,
    modules=[],
    data=[],
    seeds=[],
    variables=[],
)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = tmp_path / "output"
    folder.mkdir()
    return folder


def test_run_environment_is_read_from_results_folder(output: Path) -> None:
    assert recorded(output, None) is None
    (output / NAME).write_bytes(msgspec.json.encode(RUN))
    assert recorded(output, None) == RUN


def test_run_environment_is_read_from_worker_archive(output: Path, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(msgspec.json.encode(RUN))
    packed = tmp_path / "results-0.tar"
    with tarfile.open(packed, "w") as archive:
        archive.add(tmp_path / NAME, "deep/" + NAME)
        archive.add(tmp_path / NAME, NAME)
    assert recorded(output, packed) == RUN
    packed.write_bytes(b"no archive")
    assert recorded(output, packed) is None


def test_run_environment_ignores_links_pipes_and_foreign_files(
    output: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").write_bytes(msgspec.json.encode(RUN))
    (output / NAME).symlink_to(tmp_path / "elsewhere")
    assert recorded(output, None) is None
    (output / NAME).unlink()
    os.mkfifo(output / NAME)
    assert recorded(output, None) is None
    (output / NAME).unlink()
    (output / NAME).write_text('{"mine": 1}')
    assert recorded(output, None) is None
