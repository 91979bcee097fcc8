"""``benchpool up`` starts although another program takes a port after its choice."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from benchpool_scheduler.workstation import files
from benchpool_scheduler.workstation.ports import Ports
from benchpool_scheduler.workstation.state import StateFolder
from benchpool_support.loopback import free_port
from benchpool_support.workstation import DidNotStart, start

pytestmark = pytest.mark.slow

THIEF = """
import http.server, sys

class Stranger(http.server.BaseHTTPRequestHandler):
    '''Answers every question with 200, as another benchpool's health does.'''

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"ok": true}')

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Stranger)
print("listening", flush=True)
server.serve_forever()
"""

STEALS = """
import json, os, subprocess, sys

if "BENCHPOOL_HUB_FACTS" in os.environ and "jupyterhub" in " ".join(sys.orig_argv):
    try:  # at the first start alone
        os.close(os.open(os.environ["THEFT"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        pass
    else:
        with open(os.environ["BENCHPOOL_HUB_FACTS"]) as file:
            port = json.load(file)["ports"][os.environ["STOLEN"]]
        thief = subprocess.Popen(
            [sys.executable, "-I", "-c", os.environ["THIEF"], str(port)],
            stdout=subprocess.PIPE, start_new_session=True,
        )
        with open(os.environ["THEFT"], "w") as file:
            json.dump({"pid": thief.pid, "port": port}, file)
        thief.stdout.readline()
"""
"""Code that runs first in the Hub's process, seconds before the port is bound."""


class Theft:
    """The thief's record: its process and the port."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @property
    def port(self) -> int:
        """Return the stolen port."""
        return int(json.loads(self.file.read_text())["port"])

    def end(self) -> None:
        """End the thief."""
        if self.file.exists():
            os.kill(json.loads(self.file.read_text())["pid"], signal.SIGKILL)


@pytest.fixture
def theft(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Theft]:
    """Yield the theft of a port; the next Hub finds this port of its workstation in use."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "sitecustomize.py").write_text(STEALS)
    found = Theft(tmp_path / "theft")
    monkeypatch.setenv("PYTHONPATH", str(code))
    monkeypatch.setenv("THEFT", str(found.file))
    monkeypatch.setenv("THIEF", THIEF)
    monkeypatch.setenv("STOLEN", request.param)
    yield found
    found.end()


@pytest.mark.parametrize("theft", ["public", "hub", "proxy_api", "scheduler"], indirect=True)
def test_stolen_port_is_replaced(theft: Theft, tmp_path: Path) -> None:
    with start(tmp_path / "state") as up:
        numbers = files.read_json(StateFolder(up.state).hub / "ports.json", Ports)
        assert numbers is not None
        assert theft.port not in msgspec.structs.astuple(numbers)
        assert up.ready["self_test"]["state"] == "succeeded"


@pytest.mark.parametrize("theft", ["public"], indirect=True)
def test_stolen_public_port_is_rejected(theft: Theft, tmp_path: Path) -> None:
    port = free_port()
    with (
        pytest.raises(DidNotStart) as ended,
        start(tmp_path / "state", arguments=("--port", str(port))),
    ):
        pass
    assert ended.value.status == 2
    assert f"Port {port} on 127.0.0.1 cannot be used" in ended.value.output
