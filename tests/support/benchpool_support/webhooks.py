"""A receiver of webhooks on the loopback: received requests and scripted answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Received:
    """One request."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def events(self) -> list[str]:
        """The events of its messages."""
        return [one["event"] for one in json.loads(self.body)["messages"]]

    @property
    def texts(self) -> list[str]:
        """The texts of its messages."""
        return [one["text"] for one in json.loads(self.body)["messages"]]


@dataclass
class Receiver:
    """Received requests; ``statuses`` are the next answers, then 204."""

    url: str = ""
    came: list[Received] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    more: threading.Condition = field(default_factory=threading.Condition)

    def wait_for(self, number: int, patience_s: float = 60.0) -> list[Received]:
        """Wait until ``number`` requests have arrived and return all."""
        with self.more:
            assert self.more.wait_for(lambda: len(self.came) >= number, patience_s), self.came
            return list(self.came)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Receive webhooks on a free port."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with receiver.more:
                receiver.came.append(Received(dict(self.headers), body))
                status = receiver.statuses.pop(0) if receiver.statuses else 204
                receiver.more.notify_all()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", receiver.url)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
