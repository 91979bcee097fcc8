"""A tied command ends with its parent and is restarted after an unrequested exit."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys

from benchpool_scheduler.worker.process_identity import identity
from benchpool_scheduler.workstation import hub_facts, parent_death, processes
from benchpool_support.readable import readable_within

SLEEP = [sys.executable, "-I", "-S", "-c", "import os,time; print(os.getpid(), flush=True); time.sleep(99)"]  # noqa: E501  # fmt: skip


def wait_for_end(pid: int) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert readable_within(20, [handle]), f"process {pid} lives on"
    os.close(handle)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_tied_process_ends_with_parent() -> None:
    middle = "import subprocess,sys; p=subprocess.Popen(sys.argv[1:]); p.wait()"  # dies by SIGKILL
    parent = subprocess.Popen(
        [sys.executable, "-c", middle, *hub_facts.tie_to_parent(SLEEP)],
        stdout=subprocess.PIPE,
        text=True,
    )
    child = int(first_line(parent))
    parent.kill()
    parent.wait()
    wait_for_end(child)
    assert identity(child) is None


def test_killed_process_is_restarted_until_interrupted() -> None:
    keeper = subprocess.Popen(
        hub_facts.tie_to_parent(SLEEP, restart=True), stdout=subprocess.PIPE, text=True
    )
    first = int(first_line(keeper))
    os.kill(first, signal.SIGKILL)
    second = int(first_line(keeper))
    assert second != first
    keeper.send_signal(signal.SIGINT)
    keeper.wait(timeout=120)
    wait_for_end(second)


def test_restart_delay_grows_and_resets() -> None:
    pauses = list(itertools.accumulate([1.0] * 7, parent_death.next_pause, initial=0.0))
    assert pauses[1:] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert parent_death.next_pause(5.0, parent_death.STEADY_S + 1) == 0.2


def test_failing_process_is_restarted_repeatedly() -> None:
    fails = [sys.executable, "-I", "-S", "-c", "print(flush=True); raise SystemExit(3)"]
    keeper = subprocess.Popen(
        hub_facts.tie_to_parent(fails, restart=True), stdout=subprocess.PIPE, text=True
    )
    assert keeper.stdout is not None
    for _ in range(4):
        assert keeper.stdout.readline() == "\n"
    assert keeper.poll() is None
    keeper.send_signal(signal.SIGTERM)
    assert keeper.wait(timeout=120) in (0, 3)


def test_process_is_ended_by_identity_only() -> None:
    process = subprocess.Popen(SLEEP, stdout=subprocess.PIPE, text=True)
    first_line(process)
    known = identity(process.pid)
    assert known is not None
    assert processes.end(process.pid, known + "0", patience_s=120, kill=True)
    assert process.poll() is None  # the identity was that of another process with this number
    assert processes.end(process.pid, known, patience_s=120, kill=False)
    assert process.wait() == -signal.SIGTERM
