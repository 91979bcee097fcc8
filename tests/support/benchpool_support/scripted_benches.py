"""A scheduler with one bench and scripted answers, which records the reports of a server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LEASE = "b" * 26
QUIET: dict[str, Any] = {
    "lease": LEASE,
    "user": "susan",
    "server": "",
    "gpus": ["GPU-1"],
    "step": "idle",
    "idle_s": 3600.0,
    "coverage": 1.0,
    "kept_until": None,
    "keeps_left": 2,
    "keep_s": 3600.0,
    "exempt_until": None,
    "tell_s": 900.0,
    "ask_s": 2700.0,
    "act_s": 3600.0,
    "act": "release",
    "acts_at": None,
    "next": None,
    "next_at": None,
    "command": "none",
    "asked": False,
}
"""Default answer about a bench."""


@dataclass
class ScriptedBenches:
    """Received requests and scripted answers.

    Attributes:
        refusals: Number of times that ``released`` is refused before it is accepted.
        meanwhile: Function that runs once, between a report and its answer.
        away: Answer every request with "the scheduler is away".
    """

    url: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    reports: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    refusals: int = 0
    meanwhile: Callable[[], None] | None = None
    away: bool = False
    ended: bool = False

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        """Return status and body."""
        bench = {**QUIET, **self.facts}
        what = path.removeprefix(f"/api/v1/benches/{LEASE}/")
        self.asked.append(what)
        if self.away:
            return 503, error("not-reachable", "The scheduler is away.")
        if not path.startswith("/api/v1/benches"):
            return 404, error("not-found", "Only benches are known here.")
        if path == "/api/v1/benches":
            return 200, [] if self.ended else [bench]
        if self.ended:
            return 404, error("not-found", "There is no such bench.")
        if what == "activity":
            self.reports.append(json.loads(body))
            happens, self.meanwhile = self.meanwhile, None
            if happens is not None:
                happens()
        if what == "release":
            self.facts = {**self.facts, "command": "release", "asked": True}
            return 200, {**QUIET, **self.facts}
        if what == "released":
            self.refusals -= 1
            if self.refusals >= 0:
                return 409, error("bench-held", "A process still holds the GPU.")
            self.ended = True
            return 204, None
        return 200, bench


def error(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "field": None, "numbers": {}}}


@contextmanager
def scripted_benches() -> Iterator[ScriptedBenches]:
    """Serve scripted benches on a free port of the loopback."""
    benches = ScriptedBenches()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, answer = benches.answer(self.command, self.path, body)
            content = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_PUT = do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    benches.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield benches
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()
