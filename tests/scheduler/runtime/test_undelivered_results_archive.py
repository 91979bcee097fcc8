"""Results that cannot be copied to their folder are kept in an archive, and the end explains it."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.runtime import Results as SendsResults
from benchpool_scheduler.runtime.local import LocalRuntime
from benchpool_scheduler.worker.supervisor import results
from benchpool_support.workers import Listener, python_launch, whole_log

MAKES_FILES = (
    "import os; open('changed', 'w').write('1'); os.symlink('/etc/passwd', 'link')\n"
    "os.makedirs(os.environ['BENCHPOOL_OUTPUT_DIR'] + '/deep')\n"
    "open(os.environ['BENCHPOOL_OUTPUT_DIR'] + '/deep/out', 'w').write('model')\n"
)


def unpacked(runtime: LocalRuntime, job: str) -> dict[str, bytes]:
    assert isinstance(runtime, SendsResults)
    packed = runtime.results(job, 0)
    assert packed is not None
    with tarfile.open(packed, "r:") as archive:
        files = {one.name: archive.extractfile(one) for one in archive.getmembers()}
        return {name: file.read() for name, file in files.items() if file is not None}


@pytest.fixture
def in_the_way(tmp_path: Path) -> Path:
    """Return a folder for results that cannot be created, even by root."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "results"


async def test_uncopied_results_are_packed_and_end_is_explained(
    runtime: LocalRuntime, listener: Listener, in_the_way: Path
) -> None:
    launch = python_launch(MAKES_FILES, working_dir=None, output_dir=in_the_way)
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert (ended.exit_code, ended.by) == (0, EndedBy.ITSELF)
    assert ended.text == (
        f"its results could not be copied to {in_the_way} (Not a directory); the pool keeps them"
    )
    assert ended.text.encode() in await whole_log(runtime, launch.worker)
    assert unpacked(runtime, launch.worker.job) == {"changed": b"1", "deep/out": b"model"}


async def test_results_of_failed_job_are_packed_and_failure_kept(
    runtime: LocalRuntime, listener: Listener, in_the_way: Path
) -> None:
    launch = python_launch(
        f"{MAKES_FILES}raise ValueError('x')", working_dir=None, output_dir=in_the_way
    )
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert ended.exit_code == 1
    assert "could not be copied" not in (ended.text or "")
    assert unpacked(runtime, launch.worker.job)["deep/out"] == b"model"


async def test_copied_results_are_not_packed(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path
) -> None:
    launch = python_launch(MAKES_FILES, working_dir=None, output_dir=tmp_path / "home")
    await runtime.start(launch)
    assert (await listener.ended(launch.worker)).text is None
    assert (tmp_path / "home" / "deep" / "out").read_text() == "model"
    assert runtime.results(launch.worker.job, 0) is None


async def test_results_above_limit_are_reported_with_their_folder(
    runtime: LocalRuntime, listener: Listener, state: Path, tmp_path: Path
) -> None:
    makes = f"{MAKES_FILES}open(os.environ['BENCHPOOL_OUTPUT_DIR'] + '/large', 'w')"
    launch = python_launch(
        f"{makes}.truncate({results.MOST_BYTES + 1})",
        working_dir=None,
        output_dir=tmp_path / "home",
    )
    await runtime.start(launch)
    text = (await listener.ended(launch.worker)).text or ""
    output = state / "jobs" / launch.worker.job / "output"
    home = tmp_path / "home"
    assert text.startswith(f"its results could not be copied completely to {home} (limit: ")
    assert text.endswith(f"they are still in {output}")
    assert (output / "large").exists()


async def test_second_attempt_removes_packed_results_of_first(
    runtime: LocalRuntime, listener: Listener, in_the_way: Path
) -> None:
    first = python_launch(MAKES_FILES, working_dir=None, output_dir=in_the_way)
    await runtime.start(first)
    await listener.ended(first.worker)
    in_the_way.parent.unlink()
    second = python_launch(
        "print('again')",
        worker=replace(first.worker, attempt=2),
        working_dir=None,
        output_dir=in_the_way,
    )
    await runtime.start(second)
    await listener.ended(second.worker)
    assert runtime.results(first.worker.job, 0) is None
    assert (in_the_way / "deep" / "out").read_text() == "model"
