"""Checkpoints survive kills, damage and interrupted commits."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool import checkpoint
from benchpool_support.examples import examples

pytestmark = pytest.mark.slow

SAVE_THEN_KILL = """
import os, signal, sys
from benchpool import checkpoint
kill_at, folder = int(sys.argv[1]), os.environ["BENCHPOOL_CHECKPOINT_DIR"]
os.makedirs(folder, exist_ok=True)
seen = 0
def watch(event, args):
    global seen
    if event not in {"open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.listdir"}:
        return
    if kill_at >= 0 and seen == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    seen += 1
sys.addaudithook(watch)
with checkpoint.commit(3, keep=1) as new:
    (new / "a").write_text("third" * 100)
    (new / "deep").mkdir()
    (new / "deep" / "b").write_text("third")
print(seen)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "checkpoint"
    monkeypatch.setenv("BENCHPOOL_CHECKPOINT_DIR", str(path))
    for name in ("WORLD_SIZE", "RANK", "BENCHPOOL_NOTICE_FILE"):
        monkeypatch.delenv(name, raising=False)
    return path


def save(step: int, text: str, keep: int = 2) -> None:
    with checkpoint.commit(step, keep=keep) as new:
        (new / "a").write_text(text)


def read() -> str | None:
    found = checkpoint.latest()
    return None if found is None else (found / "a").read_text()


def test_last_commit_is_latest_and_older_are_removed(folder: Path) -> None:
    for step in range(5):
        save(step, f"step {step}")
    assert read() == "step 4"
    assert sorted(path.name for path in folder.iterdir()) == ["00000004", "00000005", "latest"]
    assert (folder / "latest").read_text() == "00000005\n"


def _save_half() -> None:
    with checkpoint.commit(2) as new:
        (new / "a").write_text("half")
        raise ZeroDivisionError


def test_raising_commit_block_changes_nothing(folder: Path) -> None:
    save(1, "first")
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(ZeroDivisionError):
        _save_half()
    assert read() == "first"
    assert sorted(path.name for path in folder.iterdir()) == before


def _run_killed(folder: Path, kill_at: int) -> subprocess.CompletedProcess[str]:
    code = SAVE_THEN_KILL
    env = {**os.environ, "BENCHPOOL_CHECKPOINT_DIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", code, str(kill_at)],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_commit_killed_at_any_step_leaves_whole_checkpoint(folder: Path) -> None:
    save(1, "first")
    save(2, "second")
    pristine = folder.with_name("pristine")
    shutil.copytree(folder, pristine)
    steps = int(_run_killed(folder, -1).stdout)
    assert steps > 15
    seen = set()
    for kill_at in range(steps):
        shutil.rmtree(folder)
        shutil.copytree(pristine, folder)
        assert _run_killed(folder, kill_at).returncode == -signal.SIGKILL
        text = read()
        assert text in ("second", "third" * 100), f"killed at step {kill_at}"
        seen.add(text)
        save(4, "fourth")
        assert read() == "fourth"
        assert not list(folder.glob(".writing-*")), "what a killed process left is cleared"
    assert len(seen) == 2


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    where=st.integers(0, 99),
    how=st.sampled_from(["flip", "cut", "remove", "manifest", "empty-manifest"]),
)
def test_damaged_checkpoint_falls_back_to_previous(folder: Path, where: int, how: str) -> None:
    save(1, "first" * 20)
    save(2, "second" * 20)
    newest = checkpoint.latest()
    assert newest is not None
    data = newest / "a"
    match how:
        case "flip":
            content = bytearray(data.read_bytes())
            content[where] ^= 0x01
            data.write_bytes(bytes(content))
        case "cut":
            data.write_bytes(data.read_bytes()[:where])
        case "remove":
            data.unlink()
        case "manifest":
            (newest / "benchpool.json").write_text('{"files": 3}')
        case _:
            (newest / "benchpool.json").write_bytes(b"")
    assert read() == "first" * 20


def test_damaged_only_checkpoint_is_reported_and_ignored(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    save(1, "first")
    (folder / "00000001" / "a").unlink()
    assert checkpoint.latest() is None
    assert "checkpoint 00000001 is damaged (a is missing)" in capfd.readouterr().err


def test_checkpoint_outside_job_does_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CHECKPOINT_DIR", "NOTICE_FILE", "PROGRESS_FILE"):
        monkeypatch.delenv(f"BENCHPOOL_{name}", raising=False)
    with checkpoint.commit(1) as new:
        (new / "a").write_text("x")
    assert not new.exists()
    assert checkpoint.latest() is None
    assert checkpoint.directory() is None
    assert checkpoint.deadline() is None
    assert not checkpoint.should_stop()
    checkpoint.progress(0.5, "half")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_signal_during_commit_waits_for_its_end(folder: Path, tmp_path: Path) -> None:
    code = """
    import os, signal
    from benchpool import checkpoint
    with checkpoint.commit(1) as new:
        (new / "a").write_text("before")
        os.kill(os.getpid(), signal.SIGTERM)
        (new / "b").write_text("after")
    print("never here")
    """
    env = {**os.environ, "BENCHPOOL_NOTICE_FILE": str(tmp_path / "notice")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGTERM
    assert done.stdout == ""
    found = checkpoint.latest()
    assert found is not None
    assert (found / "b").read_text() == "after"


def test_checkpoint_imports_only_standard_library() -> None:
    code = (
        "import sys; before = set(sys.modules); from benchpool import checkpoint;"
        "new = {name.split('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new - set(sys.stdlib_module_names) - {'benchpool'}))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_checkpoint_parses_as_python_3_9() -> None:
    import ast

    for path in Path(checkpoint.__file__).parent.glob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 9))
