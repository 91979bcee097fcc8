"""``benchpool up`` reports a full disk or missing file locks without a traceback."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest

from benchpool_support import failing_calls
from benchpool_support.exhausted import needs_root, small_disk
from benchpool_support.failing_calls import Fault
from benchpool_support.workstation import COMMAND

pytestmark = pytest.mark.slow


def up(state: Path, **environment: str) -> tuple[int, str, str]:
    """Try to start it; return status, message and the whole output."""
    line = [*COMMAND, "up", "--json", "--state", str(state), "--port", "0", "--gpus", "1"]
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    message = json.loads(done.stdout)["error"]["message"] if done.stdout else ""
    return done.returncode, message, done.stdout + done.stderr


@needs_root
def test_full_disk_is_reported(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        state = disk.folder / "state"
        for left in (0, 12):  # first the folders cannot be created, then no file in them
            disk.fill()
            disk.leave(left)
            status, message, printed = up(state)
            assert status != 0
            assert "No space left on device" in message
            assert str(state) in message
            assert "Traceback" not in printed
            disk.make_room()


def test_file_system_without_locks_is_reported(tmp_path: Path) -> None:
    library = failing_calls.compiled(tmp_path)
    if library is None:
        pytest.skip("there is no C compiler")
    state = tmp_path / "state"
    Fault(tmp_path / "fault").arm("scheduler", "flock", errno.ENOLCK, 0)
    status, message, printed = up(state, **failing_calls.environment(state, library))
    assert status == 1
    assert f"the file system of {state} (" in message
    assert "has no file locks" in message
    assert "--state" in message
    assert "Traceback" not in printed
