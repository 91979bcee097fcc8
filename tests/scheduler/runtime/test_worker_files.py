"""Snapshots are restored as submitted; results are copied back, bounded and without links."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from benchpool_scheduler.runtime import EndedBy, SnapshotEntry
from benchpool_scheduler.runtime.local import LocalRuntime
from benchpool_scheduler.worker.supervisor import results, snapshot
from benchpool_support.workers import (
    Listener,
    cancel,
    pause,
    python_launch,
    until_logged,
    whole_log,
)


def put(state: Path, path: str, content: str, *, executable: bool = False) -> SnapshotEntry:
    """Store an object as the service does and return its snapshot entry."""
    sha256 = hashlib.sha256(content.encode()).hexdigest()
    target = state / "objects" / sha256[:2] / sha256
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)
    return SnapshotEntry(path, sha256, executable)


async def test_job_runs_in_fresh_copy_of_its_files(
    runtime: LocalRuntime, listener: Listener, state: Path
) -> None:
    files = (
        put(state, "src/lib.py", "answer = 42"),
        put(state, "run.sh", "#!/bin/sh\necho $PWD; cat src/lib.py\n", executable=True),
    )
    launch = python_launch("", argv=("./run.sh",), working_dir=None, files=files)
    await runtime.start(launch)
    assert await listener.exit_of(launch.worker) == (0, EndedBy.ITSELF)
    where = state / "jobs" / launch.worker.job / "attempts" / "1" / "worker-0" / "files"
    assert (await whole_log(runtime, launch.worker)).decode() == f"{where}\nanswer = 42"
    assert (where / "run.sh").stat().st_mode & 0o777 == 0o700
    assert (where / "src" / "lib.py").stat().st_mode & 0o777 == 0o600


async def test_job_cannot_change_stored_contents(
    runtime: LocalRuntime, listener: Listener, state: Path
) -> None:
    entry = put(state, "data", "original")
    launch = python_launch("open('data', 'w').write('x')", working_dir=None, files=(entry,))
    await runtime.start(launch)
    await listener.ended(launch.worker)
    assert (state / "objects" / entry.sha256[:2] / entry.sha256).read_text() == "original"


@pytest.mark.parametrize(
    "path", ["../a", "/etc/a", "a/../b", "a//b", "./a", "a/.", "", "a\0b", "x" * 300, "a/" * 3000]
)
async def test_path_outside_folder_prevents_start(
    runtime: LocalRuntime, listener: Listener, state: Path, path: str
) -> None:
    launch = python_launch("print('ran')", working_dir=None, files=(put(state, path, "x"),))
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert ended.by is EndedBy.COULD_NOT_START
    assert ended.text is not None
    assert "snapshot path" in ended.text


@pytest.mark.parametrize("paths", [("a", "a"), ("a", "a/b"), ("a/b", "a")])
async def test_conflicting_paths_prevent_start(
    runtime: LocalRuntime, listener: Listener, state: Path, paths: tuple[str, str]
) -> None:
    files = tuple(put(state, path, "x") for path in paths)
    launch = python_launch("print('ran')", working_dir=None, files=files)
    await runtime.start(launch)
    assert (await listener.ended(launch.worker)).by is EndedBy.COULD_NOT_START


async def test_missing_content_is_reported_with_path(
    runtime: LocalRuntime, listener: Listener
) -> None:
    entry = SnapshotEntry("data/train.csv", "0" * 64)
    launch = python_launch("", working_dir=None, files=(entry,))
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert ended.text == (
        "the content of 'data/train.csv' is missing on the server; submit the job again"
    )


async def test_outputs_and_changed_files_are_copied_back(
    runtime: LocalRuntime, listener: Listener, state: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home" / "results"
    files = (put(state, "same.txt", "same"), put(state, "sub/changed.txt", "old"))
    launch = python_launch(
        "import os\n"
        "open('sub/changed.txt', 'w').write('new')\n"
        "os.makedirs('sub/made'); open('sub/made/fresh.txt', 'w').write('fresh')\n"
        "os.makedirs('__pycache__'); open('__pycache__/x.pyc', 'w').write('x')\n"
        "out = os.environ['BENCHPOOL_OUTPUT_DIR']\n"
        "os.makedirs(out + '/models'); open(out + '/models/m.bin', 'w').write('model')",
        working_dir=None,
        files=files,
        output_dir=home,
    )
    await runtime.start(launch)
    await listener.ended(launch.worker)
    found = {
        str(path.relative_to(home)): path.read_text() for path in home.rglob("*") if path.is_file()
    }
    assert found == {
        "sub/changed.txt": "new",
        "sub/made/fresh.txt": "fresh",
        "models/m.bin": "model",
    }


async def test_job_in_live_folder_copies_back_only_outputs(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path
) -> None:
    live, home = tmp_path / "live", tmp_path / "home"
    live.mkdir()
    launch = python_launch(
        "import os; open('here.txt', 'w').write('x')\n"
        "open(os.environ['BENCHPOOL_OUTPUT_DIR'] + '/out.txt', 'w').write('y')",
        working_dir=live,
        output_dir=home,
    )
    await runtime.start(launch)
    await listener.ended(launch.worker)
    assert os.listdir(home) == ["out.txt"]
    assert os.listdir(live) == ["here.txt"]


async def test_results_are_copied_before_end_is_reported(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path
) -> None:
    program = (
        "import os, time; print('up')\n"
        "open(os.environ['BENCHPOOL_OUTPUT_DIR'] + '/part', 'w').write('x' * 10**7)\n"
    )
    failing = python_launch(program + "raise SystemExit(1)", output_dir=tmp_path / "failed")
    waiting = python_launch(program + "print('wrote'); time.sleep(60)", output_dir=tmp_path / "c")
    await runtime.start(failing)
    await runtime.start(waiting)
    await until_logged(runtime, waiting.worker, b"wrote")
    await runtime.stop(waiting.worker, cancel(5))
    for launch in (failing, waiting):
        await listener.ended(launch.worker)
        assert launch.output_dir is not None
        assert (launch.output_dir / "part").stat().st_size == 10**7


async def test_pause_skips_copying_of_results(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path
) -> None:
    launch = python_launch(
        "import os, time\n"
        "open(os.environ['BENCHPOOL_OUTPUT_DIR'] + '/part', 'w').write('x')\n"
        "print('up'); time.sleep(60)",
        output_dir=tmp_path / "home",
    )
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    await runtime.stop(launch.worker, pause(0.5))
    await listener.ended(launch.worker)
    assert not (tmp_path / "home").exists()


async def test_links_and_pipes_in_results_are_skipped_with_message(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret")
    launch = python_launch(
        "import os; os.chdir(os.environ['BENCHPOOL_OUTPUT_DIR'])\n"
        f"os.symlink({str(secret / 'key')!r}, 'file'); os.symlink({str(secret)!r}, 'folder')\n"
        "os.mkfifo('pipe'); open('good', 'w').write('x')",
        output_dir=tmp_path / "home",
    )
    await runtime.start(launch)
    await listener.ended(launch.worker)
    assert os.listdir(tmp_path / "home") == ["good"]
    assert b"3 links or special files among the results were left out" in await whole_log(
        runtime, launch.worker
    )


async def test_unwritable_result_folder_is_logged_and_exit_code_kept(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    launch = python_launch(
        "import os; open(os.environ['BENCHPOOL_OUTPUT_DIR'] + '/out', 'w').write('x')",
        output_dir=tmp_path / "file",
    )
    await runtime.start(launch)
    assert await listener.exit_of(launch.worker) == (0, EndedBy.ITSELF)
    assert b"could not be copied" in await whole_log(runtime, launch.worker)


def test_results_above_limits_are_counted_and_reported(tmp_path: Path) -> None:
    source, goal = tmp_path / "source", tmp_path / "goal"
    source.mkdir()
    for n in range(5):
        (source / str(n)).write_text("x" * 10)
    carrier = results.Carrier(str(goal), most_files=3, most_bytes=25)
    carrier.copy(str(source))
    assert len(os.listdir(goal)) == 2
    (sentence,) = carrier.sentences()
    assert sentence.startswith(
        "3 result files were left out because results are limited to 3 files"
    )


def test_target_link_is_replaced_and_linked_folder_not_entered(tmp_path: Path) -> None:
    source, goal, elsewhere = tmp_path / "source", tmp_path / "goal", tmp_path / "elsewhere"
    (source / "sub").mkdir(parents=True)
    (source / "a").write_text("new")
    (source / "sub" / "b").write_text("new")
    goal.mkdir()
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("kept")
    (goal / "a").symlink_to(elsewhere / "kept")
    (goal / "sub").symlink_to(elsewhere)
    carrier = results.Carrier(str(goal))
    carrier.copy(str(source))
    assert (goal / "a").read_text() == "new"
    assert not (goal / "a").is_symlink()
    assert os.listdir(elsewhere) == ["kept"]
    assert (elsewhere / "kept").read_text() == "kept"
    assert carrier.failed


def test_valid_snapshot_paths_keep_their_parts() -> None:
    assert snapshot.checked_parts("a/b c/..d/é.py") == ["a", "b c", "..d", "é.py"]


async def test_forget_deletes_job_files_and_follows_no_link(
    runtime: LocalRuntime, listener: Listener, state: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("kept")
    launch = python_launch(
        f"import os; os.symlink({str(kept)!r}, os.environ['BENCHPOOL_CHECKPOINT_DIR'] + '/link')"
    )
    await runtime.start(launch)
    await listener.ended(launch.worker)
    await runtime.forget(launch.worker.job)
    assert not (state / "jobs" / launch.worker.job).exists()
    assert (kept / "file").read_text() == "kept"
