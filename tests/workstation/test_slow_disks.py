"""A slow disk delays copies of databases, but not a start or the Hub."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from benchpool_support import failing_calls
from benchpool_support.waiting import until
from benchpool_support.workstation import start

SOURCE = Path(failing_calls.__file__).with_name("slow_flushes.c")
FLUSH_S = 8

LOCKS = """
import os, sqlite3, sys, threading, time

if "up" in sys.orig_argv:
    from benchpool_scheduler.workstation import files

    write = files.write_private

    def write_and_lock(path, data):
        write(path, data)
        if path.name == "admin-token":
            locked = threading.Event()
            database = path.parent / "hub" / "jupyterhub.sqlite"
            threading.Thread(target=hold, args=(database, locked)).start()
            locked.wait()

    def hold(database, locked):
        connection = sqlite3.connect(database, isolation_level=None, timeout=60)
        connection.execute("BEGIN EXCLUSIVE")
        locked.set()
        time.sleep(float(os.environ["LOCK_S"]))
        connection.execute("ROLLBACK")
        connection.close()

    files.write_private = write_and_lock
"""
"""Code that locks the Hub's database as soon as the administrator's token is written."""


def slow_flushes(folder: Path, below: Path) -> Mapping[str, str]:
    """Return the environment of a process with slow flushes of files below a folder."""
    library = failing_calls.compiled(folder, SOURCE)
    if library is None:
        pytest.skip("there is no C compiler")
    return {
        "LD_PRELOAD": str(library),
        "SLOW_BELOW": str(below),
        "SLOW_S": str(FLUSH_S),
        "SLOW_SEEN": str(folder / "flushes"),
    }


def test_hub_writes_during_database_copy(tmp_path: Path) -> None:
    database, copies = tmp_path / "hub.sqlite", tmp_path / "copies"
    copies.mkdir()
    with closing(sqlite3.connect(database, isolation_level=None, timeout=0.5)) as hub:
        hub.execute("CREATE TABLE users (name TEXT)")
        hub.execute("INSERT INTO users VALUES (hex(zeroblob(3000000)))")
        copying = (
            "import sys; from pathlib import Path; from benchpool_scheduler.store import copies;"
            "copies.copy_file(*map(Path, sys.argv[1:]))"
        )
        command = [sys.executable, "-c", copying, str(database), str(copies / "hub.sqlite")]
        environment = {**os.environ, **slow_flushes(tmp_path, copies)}
        with subprocess.Popen(command, env=environment) as process:
            until((tmp_path / "flushes").exists, "the copy is flushed")
            hub.execute("INSERT INTO users VALUES ('susan')")
            assert process.poll() is None  # still flushing
        assert process.returncode == 0
    with closing(sqlite3.connect(copies / "hub.sqlite")) as copy:
        assert copy.execute("SELECT count(*) FROM users").fetchone() == (1,)


@pytest.mark.slow
def test_database_is_not_copied_during_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    for name, value in slow_flushes(tmp_path, state / "backups").items():
        monkeypatch.setenv(name, value)
    with start(state) as up:
        assert up.ready["self_test"]["state"] == "succeeded"
        assert not (state / "backups").exists()
        assert not (tmp_path / "flushes").exists()


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [8, 40])
def test_locked_hub_database_is_awaited(
    seconds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Hub's SQLite waits for 30 s; after a longer lock it answers 403 or 500."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "sitecustomize.py").write_text(LOCKS)
    monkeypatch.setenv("PYTHONPATH", str(code))
    monkeypatch.setenv("LOCK_S", str(seconds))
    with start(tmp_path / "state") as up:
        assert up.ready["seconds"] > seconds
        assert up.ready["self_test"]["state"] == "succeeded"
