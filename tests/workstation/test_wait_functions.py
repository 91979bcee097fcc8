"""The tests' wait functions: they continue with progress and time out without it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchpool_support import kube_hub
from benchpool_support.kube_hub import KubeHub
from benchpool_support.waiting import Overdue, until, until_async

SLOW = """
import http.server, sys, time
while time.process_time() < 1:
    pass
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
"""Server that uses one second of processor time, however long that takes, and then answers."""


def test_wait_continues_with_progress_and_times_out() -> None:
    looks = iter(range(100))
    assert until(lambda: next(looks) > 3, "some looks", 0.5, progress=time.monotonic)
    with pytest.raises(AssertionError, match=r"not within 0\.3 s: ever"):
        until(lambda: False, "ever", 0.3)
    with pytest.raises(AssertionError, match="not within 3 s: ever"):
        until(lambda: False, "ever", 0.3, progress=time.monotonic)


async def test_overdue_wait_shows_condition_and_last_value() -> None:
    looks = iter(range(100))

    async def look() -> int:
        return next(looks)

    assert await until_async(look, holds=lambda number: number > 3) == 4
    with pytest.raises(Overdue, match=r"functions.py:\d+: .*ever\"\)\nlast seen: 'never'"):
        await until_async(lambda: "never", seconds=0.1, holds=lambda value: value == "ever")
    with pytest.raises(Overdue, match=r"it is 5\nlast seen: 4"):
        until(lambda: 4, lambda: f"it is {next(looks)}", 0.1, holds=lambda number: number == 5)


def hub(folder: Path) -> KubeHub:
    unused: Any = None
    (folder / "hub.log").touch()
    return KubeHub(folder, Path(sys.executable), folder, "", "", unused)


def test_slow_hub_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube_hub, "READY_S", 5.0)
    one = hub(tmp_path)
    one.process = subprocess.Popen([sys.executable, "-c", SLOW, str(one.port)])
    try:
        one.wait_up()
        assert one.api("GET", "info").is_success
    finally:
        one.process.kill()
        one.process.wait()


def test_idle_or_ended_hub_fails_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube_hub, "READY_S", 2.0)
    one = hub(tmp_path)
    one.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        with pytest.raises(AssertionError, match="nothing moved for 2 s: the Hub"):
            one.wait_up()
    finally:
        one.process.kill()
        one.process.wait()
    with pytest.raises(AssertionError, match="the Hub ended"):
        one.wait_up()
