"""Open files and lifetime of a cluster's processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchpool_cluster.processes import Processes, began
from benchpool_support.waiting import until

THREAD_STAYS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_process_does_not_inherit_open_files(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)  # like the lock of `flock FILE make cluster`
    processes = Processes(tmp_path, tied=True)
    processes.start("sleeper", ["sleep", "60"])
    os.close(writing)
    os.set_blocking(reading, False)
    try:
        assert os.read(reading, 1) == b""  # no other process has the other end
        assert processes.is_running("sleeper")
    finally:
        os.close(reading)
        processes.kill_all()


def test_process_runs_until_last_thread_ends(tmp_path: Path) -> None:
    processes = Processes(tmp_path, tied=True)
    processes.start("two threads", [sys.executable, "-c", THREAD_STAYS])
    pid = processes.pid("two threads")
    stat = Path(f"/proc/{pid}/stat")
    try:
        until(lambda: " Z " in stat.read_text())  # its first thread has ended
        assert processes.is_running("two threads")
    finally:
        processes.kill_all()
    assert began(pid) is None
