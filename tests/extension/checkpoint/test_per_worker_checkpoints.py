"""Workers without a shared folder: each saves its part, and the next attempt finds all parts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchpool import checkpoint
from benchpool.checkpoint import notices, votes

pytestmark = pytest.mark.slow

SAVES = """
import sys
from benchpool import checkpoint
from benchpool.checkpoint import votes
for step in map(int, sys.argv[1:]):
    with checkpoint.commit(step, together=True) as folder:
        (folder / f"part-{votes.rank()}").write_text(f"{step} of {votes.rank()}")
"""


def save(folder: Path, rank: int, attempt: int, *steps: int) -> None:
    """Save the part of one of two ranks in a folder of its own."""
    env = {
        **os.environ,
        "BENCHPOOL_CHECKPOINT_DIR": str(folder),
        "BENCHPOOL_CHECKPOINT_SHARED": "no",
        "BENCHPOOL_ATTEMPT": str(attempt),
        "NNODES": "2",
        "NODE_RANK": str(rank),
    }
    words = [sys.executable, "-c", SAVES, *map(str, steps)]
    subprocess.run(words, env=env, timeout=60, check=True)


def join(folders: Sequence[Path], target: Path) -> Path:
    """Merge the workers' folders as an agent does, the first worker's last."""
    for folder in reversed(folders):
        shutil.copytree(folder, target, dirs_exist_ok=True)
    return target


def found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str] | None:
    """Return the parts of the latest valid checkpoint."""
    monkeypatch.setenv("BENCHPOOL_CHECKPOINT_DIR", str(folder))
    newest = checkpoint.latest()
    if newest is None:
        return None
    return {path.name: path.read_text() for path in sorted(newest.glob("part-*"))}


def parts(step: int) -> dict[str, str]:
    return {f"part-{rank}": f"{step} of {rank}" for rank in (0, 1)}


def test_parts_of_separate_workers_form_one_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "0", tmp_path / "1"]
    for rank, folder in enumerate(folders):
        save(folder, rank, 1, 10, 20, 30)
    assert found(join(folders, tmp_path / "joined"), monkeypatch) == parts(30)


def test_missing_part_selects_previous_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "0", tmp_path / "1"]
    save(folders[0], 0, 1, 10, 20, 30)
    save(folders[1], 1, 1, 10, 20)
    assert found(join(folders, tmp_path / "joined"), monkeypatch) == parts(20)


@pytest.mark.parametrize("late", [0, 1])
def test_parts_of_different_attempts_are_never_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    first = [tmp_path / "0", tmp_path / "1"]
    for rank, folder in enumerate(first):
        save(folder, rank, 1, 10, *([] if rank == late else [20]))
    second = [join(first, tmp_path / f"again-{rank}") for rank in (0, 1)]
    for rank, folder in enumerate(second):
        save(folder, rank, 2, 15)
    assert found(join(second, tmp_path / "joined"), monkeypatch) == parts(15)
    save(second[0], 0, 3, 25)  # the next attempt is interrupted as well
    assert found(join(second, tmp_path / "last"), monkeypatch) == parts(15)


def test_ranks_of_one_worker_save_into_one_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in (0, 1):
        save(tmp_path / "both", rank, 1, 10, 20)
    assert found(tmp_path / "both", monkeypatch) == parts(20)


@pytest.fixture
def notified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set up one of two workers without a shared folder, with a notice to stop."""
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BENCHPOOL_CHECKPOINT_DIR", str(tmp_path))
    monkeypatch.setenv("BENCHPOOL_CHECKPOINT_SHARED", "no")
    monkeypatch.setenv("NNODES", "2")
    monkeypatch.setenv("BENCHPOOL_NOTICE_FILE", str(tmp_path / "notice"))
    monkeypatch.setattr(notices, "raise_flag_on_sigterm", lambda: None)
    monkeypatch.setattr(notices, "_asked", threading.Event())
    monkeypatch.setattr(votes, "stopping", False)
    monkeypatch.setattr(votes, "_requested_at", None)
    (tmp_path / "notice").write_text("{}")


def test_first_worker_stops_at_notice(notified: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_RANK", "0")
    assert checkpoint.should_stop()


def test_other_workers_stop_after_delay(notified: None, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [time.monotonic()]
    monkeypatch.setattr("benchpool.checkpoint.votes.time.monotonic", lambda: now[0])
    monkeypatch.setenv("NODE_RANK", "1")
    answers = []
    for _ in range(5):
        answers.append(checkpoint.should_stop())
        now[0] += 2
    assert answers == [False, False, False, True, True]


def test_only_first_worker_without_launcher_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCHPOOL_CHECKPOINT_DIR", str(tmp_path))
    monkeypatch.setenv(
        "WORLD_SIZE", "4"
    )  # two GPUs each; without a launcher there is one process per worker
    monkeypatch.setenv("NNODES", "2")
    monkeypatch.delenv("RANK", raising=False)
    for rank, kept in (("1", 0), ("0", 1)):
        monkeypatch.setenv("NODE_RANK", rank)
        with checkpoint.commit(1) as folder:
            (folder / "a").write_text(rank)
        assert sum(path.name.isdecimal() for path in tmp_path.iterdir()) == kept
