"""``benchpool up`` does not give up: what dies is started again, a slow start is waited for."""

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
"""How long a Hub waits by itself for a service that it starts."""

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
"""By the clock, whatever else the machine does; it works a fifth of that time, so that a start is
seen to go on and other tests have a processor."""


def running_job(up: RunningWorkstation) -> dict[str, object]:
    sent = up.scheduler.post("/jobs", json={"entry": SLEEPER, "name": "sleeper", "gpus": 2})
    assert sent.status_code == 201, sent.text
    return up.wait_job(sent.json()["id"], "running")


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningWorkstation]:
    """A workstation whose scheduler loses its writing thread on SIGUSR2."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "sitecustomize.py").write_text(ENDS_THREADS)
    monkeypatch.setenv("PYTHONPATH", str(code))
    with start(tmp_path / "state") as up:
        yield up


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_scheduler_that_works_long_before_it_answers_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BEGINS_LATE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with start(tmp_path / "state") as up:
        assert up.ready["seconds"] > HUBS_PATIENCE_S


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_hub_that_dies_again_and_again_while_it_restarts_comes_back(tmp_path: Path) -> None:
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
    """Return whether a process has a descriptor by which it hears of another's end."""
    for facts in Path(f"/proc/{process}/fdinfo").iterdir():
        with contextlib.suppress(OSError):
            if f"Pid:\t{of}\n" in facts.read_text():
                return True
    return False


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_killed_keeper_of_the_scheduler_is_started_again(tmp_path: Path) -> None:
    with start(tmp_path / "state") as up:
        job = running_job(up)
        for _ in range(2):
            keeper = psutil.Process(up.scheduler_pid()).ppid()
            # Without it the Hub would see the end by its next look, up to 30 s later.
            until(partial(has_pidfd, up.hub_pid(), keeper), "the Hub watches its service")
            os.kill(keeper, signal.SIGKILL)
            up.wait_event("scheduler-restarted")
        assert up.wait_job(str(job["id"]), "running")["started"] == job["started"]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_service_whose_writing_thread_ends_ends_and_comes_back_with_every_job(
    faulty: RunningWorkstation,
) -> None:
    job = running_job(faulty)
    before = faulty.scheduler_pid()
    os.kill(before, signal.SIGUSR2)
    # The thread waits for work: what it is given is answered as not accepted, or by the next one.
    answer = faulty.scheduler.post("/jobs", json={"entry": SLEEPER, "name": "late", "key": "k"})
    assert answer.status_code in (201, 502, 503), answer.text
    ended = faulty.wait_event("scheduler-failed")
    assert "has ended" in ended["text"]
    assert "started again" in ended["text"]
    faulty.wait_event("scheduler-restarted")
    assert identity(before) is None
    status = faulty.scheduler.get("/status").json()
    assert status["health"]["ok"], status["health"]
    assert faulty.wait_job(str(job["id"]), "running")["started"] == job["started"]
    jobs = [it["name"] for it in faulty.scheduler.get("/jobs").json()]
    assert ("late" in jobs) == (answer.status_code == 201)


class _Late(BaseHTTPRequestHandler):
    """Answers 503 for a while, as a service does that is starting."""

    ready_at = 0.0

    def do_GET(self) -> None:
        self.send_response(200 if time.monotonic() > self.ready_at else 503)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def late() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Late)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _Late.ready_at = time.monotonic() + 1.5
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


async def test_a_start_is_waited_for_as_long_as_something_happens(late: str) -> None:
    await wait_until(AwaitedAddress(late), 0.5, progress=lambda: int(time.monotonic() * 10))


async def test_a_start_in_which_nothing_happens_any_more_has_failed(late: str) -> None:
    _Late.ready_at = math.inf
    with pytest.raises(TimeoutError):
        await wait_until(AwaitedAddress(late), 0.5, progress=lambda: "stands still")
    await asyncio.sleep(0)


@pytest.fixture
def busy(request: pytest.FixtureRequest) -> Iterator[int]:
    """A process that says nothing: it works, or sleeps."""
    with subprocess.Popen([sys.executable, "-c", request.param]) as process:
        yield process.pid
        process.kill()


def silent(folder: Path, pid: int) -> StartProgress:
    return StartProgress(folder, lambda: 0, lambda: processes.processor_s(pid) * 100)


@pytest.mark.parametrize("busy", ["while True: pass"], indirect=True)
async def test_a_silent_start_that_uses_the_processor_is_waited_for(
    busy: int, late: str, tmp_path: Path
) -> None:
    await wait_until(AwaitedAddress(late), 1.0, silent(tmp_path, busy).look)


@pytest.mark.parametrize("busy", ["import time; time.sleep(600)"], indirect=True)
async def test_a_silent_start_that_only_waits_has_failed(busy: int, tmp_path: Path) -> None:
    nobody = "http://127.0.0.1:9/"
    with pytest.raises(TimeoutError):
        await wait_until(AwaitedAddress(nobody), 0.5, silent(tmp_path, busy).look)


def test_a_start_that_turns_in_circles_is_no_news_for_ever(tmp_path: Path) -> None:
    used = iter([10.0, 20.0, 5.0, MOST_S + 1, MOST_S + 100])
    seen = StartProgress(tmp_path, lambda: 0, lambda: next(used))
    first, second, less, most, beyond = (seen.look() for _ in range(5))
    assert first != second
    assert second == less  # what was begun anew
    assert less != most
    assert most == beyond


@pytest.mark.slow
def test_a_start_that_fails_is_told_at_once_by_its_sentence(tmp_path: Path) -> None:
    (tmp_path / "state" / "scheduler").mkdir(parents=True)
    (tmp_path / "state" / "scheduler" / "pool.lock").mkdir()
    with pytest.raises(DidNotStart) as ended, start(tmp_path / "state"):
        pass
    assert ended.value.status == 1
    assert "pool.lock" in json.loads(ended.value.output)["error"]["message"]
