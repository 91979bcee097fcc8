"""What the processes of a cluster have, and do not have, of whoever started them."""

from __future__ import annotations

import os
from pathlib import Path

from benchpool_cluster.processes import Processes


def test_a_process_does_not_hold_what_was_left_open_for_its_starter(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)  # as the lock that `flock FILE make cluster` holds
    processes = Processes(tmp_path, tied=True)
    processes.start("sleeper", ["sleep", "60"])
    os.close(writing)
    os.set_blocking(reading, False)
    try:
        assert os.read(reading, 1) == b""  # nobody else has the other end
        assert processes.is_running("sleeper")
    finally:
        os.close(reading)
        processes.kill_all()
