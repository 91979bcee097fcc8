"""The state folder is private, has one user at a time, and keeps ports and keys."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from benchpool_scheduler.errors import InvalidInput, Unavailable
from benchpool_scheduler.worker.process_identity import identity
from benchpool_scheduler.workstation import files, hub_facts, login_keys, state
from benchpool_spawner.login_link import redeem


@pytest.fixture
def folder(tmp_path: Path) -> state.StateFolder:
    return state.prepare(tmp_path / "state")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_state_folder_is_readable_by_owner_only(folder: state.StateFolder) -> None:
    assert mode(folder.path) == 0o700
    hub_facts.secrets(folder)
    for name in ("shared-password", "admin-password", "metrics-token", "hub/hub-token"):
        assert mode(folder.path / name) == 0o600


def test_jobs_of_other_accounts_reach_only_job_folders(
    tmp_path: Path,
) -> None:
    for place in (tmp_path, *tmp_path.parents):
        if place.is_relative_to(tempfile.gettempdir()) and place != Path(tempfile.gettempdir()):
            place.chmod(0o755)
    folder = state.prepare(tmp_path / "state", passable=True)
    hub_facts.secrets(folder)
    assert (mode(folder.path), mode(folder.path / "jobs")) == (0o711, 0o711)
    assert {mode(folder.path / name) for name in ("hub", "scheduler", "objects", "homes")} == {
        0o700
    }
    with state.alone(folder):
        assert mode(folder.path / "up.lock") == 0o600


def test_unreachable_state_folder_is_rejected_for_accounts(
    tmp_path: Path,
) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    with pytest.raises(InvalidInput, match=r"have no access through .*--state"):
        state.prepare(tmp_path / "closed" / "state", passable=True)


def test_secrets_are_kept_between_starts(folder: state.StateFolder) -> None:
    assert hub_facts.secrets(folder) == hub_facts.secrets(folder)


def test_uncreatable_folder_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="--state"):
        state.prepare(tmp_path / "file" / "state")


def test_second_start_is_rejected_with_running_address(
    folder: state.StateFolder,
) -> None:
    me = identity(os.getpid()) or ""
    files.write_json(
        folder.running,
        state.RunningInstance(
            os.getpid(), me, "http://127.0.0.1:1/", "h", "s", "admin-token", "one-time"
        ),
    )
    with (
        state.alone(folder),
        pytest.raises(Unavailable, match=r"http://127.0.0.1:1/.*benchpool down"),
        state.alone(folder),
    ):
        pass


def test_ending_hub_is_awaited(folder: state.StateFolder) -> None:
    with state.alone(folder) as lock:
        # Like a Hub whose `benchpool up` was killed: it holds a copy of the lock for a while.
        hub = subprocess.Popen(["sleep", "0.5"], pass_fds=(lock,))
    with state.alone(folder):
        assert hub.poll() is not None or hub.wait(timeout=120) == 0


HOLDS = """
import sys, time
from pathlib import Path
from benchpool_scheduler.workstation import state
with state.alone(state.at(Path(sys.argv[1]))):
    print("held", flush=True)
    time.sleep(600)
"""


def test_lock_holder_without_note_ends_as_advised(
    folder: state.StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`benchpool down` would read the damaged note and could not end the process."""
    monkeypatch.setattr(state, "END_PATIENCE_S", 0.0)
    command = [sys.executable, "-c", HOLDS, str(folder.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            folder.running.write_text("{")
            with pytest.raises(Unavailable) as refused, state.alone(folder):
                pass
            (advised,) = re.findall(r"Stop it with `([^`]+)`", refused.value.message)
            assert advised == f"kill {holder.pid}"
            subprocess.run(shlex.split(advised), check=True)
            holder.wait()
        finally:
            holder.kill()
    with state.alone(folder):
        pass


def test_login_key_works_once_and_is_stored_hashed(folder: state.StateFolder) -> None:
    key = login_keys.create(folder.login_keys, "susan")
    [file] = folder.login_keys.iterdir()
    assert key not in file.name + file.read_text()
    assert mode(file) == 0o600
    assert redeem(folder.login_keys, key) == "susan"
    assert redeem(folder.login_keys, key) is None


def test_login_key_expires_after_one_day(folder: state.StateFolder) -> None:
    key = login_keys.create(folder.login_keys, "susan")
    late = time.time() + login_keys.LIFETIME_S + 1
    assert redeem(folder.login_keys, key, now=late) is None


@pytest.mark.parametrize("key", ["", "short", "../../../etc/passwd", "x" * 500, "a b" * 20])
def test_invalid_login_key_is_rejected(folder: state.StateFolder, key: str) -> None:
    assert redeem(folder.login_keys, key) is None
