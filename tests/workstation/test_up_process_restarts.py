"""``benchpool up`` restarts dead processes and waits for slow starts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

from benchpool_scheduler.worker.process_identity import identity
from benchpool_scheduler.workstation import processes
from benchpool_scheduler.workstation.hub_api import AwaitedAddress, wait_until
from benchpool_scheduler.workstation.start_progress import MOST_S, StartProgress
from benchpool_support.waiting import until
from benchpool_support.workstation import DidNotStart, RunningWorkstation, start

HUBS_PATIENCE_S = 30
"""Time that a Hub waits for a service that it starts, in seconds."""

SLEEPER = {"kind": "command", "argv": ["sleep", "600"]}

ENDS_THREADS = """
import ctypes, signal, threading

def end(number, frame):
    '''End the thread that writes to the store, as a fault in it would.'''
    for thread in threading.enumerate():
        if thread.name == "benchpool-store":
            fault = ctypes.py_object(MemoryError)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), fault)

signal.signal(signal.SIGUSR2, end)
"""

BEGINS_LATE = f"""
import sys, time

if "benchpool_scheduler.app" in sys.orig_argv:
    until = time.monotonic() + {HUBS_PATIENCE_S + 3}
    while time.monotonic() < until:
        sum(range(1_000_000))
        time.sleep(0.1)
"""
"""A delay in wall-clock time. It uses the processor for a fifth of that time, so that the start
shows progress and other tests have a processor.
"""


def running_job(up: RunningWorkstation) -> dict[str, object]:
    sent = up.scheduler.post("/jobs", json={"entry": SLEEPER, "name": "sleeper", "gpus": 2})
    assert sent.status_code == 201, sent.text
    return up.wait_job(sent.json()["id"], "running")


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningWorkstation]:
    """Yield a workstation whose scheduler loses its writer thread on SIGUSR2."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "sitecustomize.py").write_text(ENDS_THREADS)
    monkeypatch.setenv("PYTHONPATH", str(code))
    with start(tmp_path / "state") as up:
        yield up


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_slow_scheduler_start_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(BEGINS_LATE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with start(tmp_path / "state") as up:
        assert up.ready["seconds"] > HUBS_PATIENCE_S


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_repeatedly_killed_hub_is_restarted(tmp_path: Path) -> None:
    with start(tmp_path / "state") as up:
        job = running_job(up)
        for number in range(4):
            os.kill(up.hub_pid(), signal.SIGKILL)
            up.wait_event("hub-restarts" if number == 0 else "hub-restart-failed")
        up.wait_event("hub-restarted")
        assert up.process.poll() is None
        again = up.wait_job(str(job["id"]), "running")
        assert (again["attempt"], again["started"]) == (job["attempt"], job["started"])


def has_pidfd(process: int, of: int) -> bool:
    """Return whether a process has a pidfd of another process."""
    for facts in Path(f"/proc/{process}/fdinfo").iterdir():
        with contextlib.suppress(OSError):
            if f"Pid:\t{of}\n" in facts.read_text():
                return True
    return False


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_killed_scheduler_keeper_is_restarted(tmp_path: Path) -> None:
    with start(tmp_path / "state") as up:
        job = running_job(up)
        for _ in range(2):
            keeper = psutil.Process(up.scheduler_pid()).ppid()
            # Without the pidfd the Hub would notice the exit at its next poll, up to 30 s later.
            until(partial(has_pidfd, up.hub_pid(), keeper), "the Hub watches its service")
            os.kill(keeper, signal.SIGKILL)
            up.wait_event("scheduler-restarted")
        assert up.wait_job(str(job["id"]), "running")["started"] == job["started"]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_scheduler_restarts_after_writer_thread_ends(
    faulty: RunningWorkstation,
) -> None:
    job = running_job(faulty)
    before = faulty.scheduler_pid()
    os.kill(before, signal.SIGUSR2)
    # The thread waits for work. The next request is answered as not accepted, or by the next
    # process.
    answer = faulty.scheduler.post("/jobs", json={"entry": SLEEPER, "name": "late", "key": "k"})
    assert answer.status_code in (201, 502, 503), answer.text
    ended = faulty.wait_event("scheduler-failed")
    assert "has stopped" in ended["text"]
    assert "is restarted" in ended["text"]
    faulty.wait_event("scheduler-restarted")
    assert identity(before) is None
    status = faulty.scheduler.get("/status").json()
    assert status["health"]["ok"], status["health"]
    assert faulty.wait_job(str(job["id"]), "running")["started"] == job["started"]
    jobs = [it["name"] for it in faulty.scheduler.get("/jobs").json()]
    assert ("late" in jobs) == (answer.status_code == 201)


class _Late(BaseHTTPRequestHandler):
    """Handler that answers 503 for a while, like a starting service."""

    ready_at = 0.0

    def do_GET(self) -> None:
        self.send_response(200 if time.monotonic() > self.ready_at else 503)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def late() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Late)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _Late.ready_at = time.monotonic() + 1.5
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


async def test_start_with_progress_is_awaited(late: str) -> None:
    await wait_until(AwaitedAddress(late), 0.5, progress=lambda: int(time.monotonic() * 10))


async def test_start_without_progress_times_out(late: str) -> None:
    _Late.ready_at = math.inf
    with pytest.raises(TimeoutError):
        await wait_until(AwaitedAddress(late), 0.5, progress=lambda: "stands still")
    await asyncio.sleep(0)


@pytest.fixture
def busy(request: pytest.FixtureRequest) -> Iterator[int]:
    """Yield the ID of a silent process that works or sleeps."""
    with subprocess.Popen([sys.executable, "-c", request.param]) as process:
        yield process.pid
        process.kill()


def silent(folder: Path, pid: int) -> StartProgress:
    return StartProgress(folder, lambda: 0, lambda: processes.processor_s(pid) * 100)


@pytest.mark.parametrize("busy", ["while True: pass"], indirect=True)
async def test_silent_start_using_processor_is_awaited(
    busy: int, late: str, tmp_path: Path
) -> None:
    await wait_until(AwaitedAddress(late), 1.0, silent(tmp_path, busy).look)


@pytest.mark.parametrize("busy", ["import time; time.sleep(600)"], indirect=True)
async def test_idle_start_times_out(busy: int, tmp_path: Path) -> None:
    unreachable = "http://127.0.0.1:9/"
    with pytest.raises(TimeoutError):
        await wait_until(AwaitedAddress(unreachable), 0.5, silent(tmp_path, busy).look)


def test_processor_use_counts_as_progress_up_to_limit(tmp_path: Path) -> None:
    used = iter([10.0, 20.0, 5.0, MOST_S + 1, MOST_S + 100])
    seen = StartProgress(tmp_path, lambda: 0, lambda: next(used))
    first, second, less, most, beyond = (seen.look() for _ in range(5))
    assert first != second
    assert second == less  # a restart of the processor time
    assert less != most
    assert most == beyond


@pytest.mark.slow
def test_failed_start_reports_its_error(tmp_path: Path) -> None:
    (tmp_path / "state" / "scheduler").mkdir(parents=True)
    (tmp_path / "state" / "scheduler" / "pool.lock").mkdir()
    with pytest.raises(DidNotStart) as ended, start(tmp_path / "state"):
        pass
    assert ended.value.status == 1
    assert "pool.lock" in json.loads(ended.value.output)["error"]["message"]
