"""Cost of the gate to users' services for a request.

``python benchmarks/gate.py [--rounds 5]``: a replica that answers 220 bytes, and the gate with a
caller who presents a token, are processes of their own; the measuring client is a third. Direct
requests and requests through the gate alternate: one request at a time, sixteen at once, a download
of 256 MiB, and an echo over a websocket. There is no request to the Hub, as with a caller whom the
service has authenticated in the last four seconds. The Hub's own proxy, which every request also
passes, is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import statistics
import subprocess
import sys
import time
from pathlib import Path

import checkout  # noqa: F401
import psutil
from tables import Figure, show
from tornado.httpclient import HTTPRequest
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketHandler, websocket_connect

from benchpool_scheduler.api import Rate
from benchpool_scheduler.gate import Backend, Openness
from benchpool_support.gate_stage import PREFIX, listening, staged

ONE, MANY, AT_ONCE, DOWNLOAD = 300, 1600, 16, 256
MIB = 2**20
HEAD = "GET {path} HTTP/1.1\r\nHost: hub\r\nAuthorization: token susan\r\n\r\n"


class Small(RequestHandler):
    """Handler with a small answer."""

    def get(self) -> None:
        """Return the answer."""
        self.write(b'{"ok":true}' * 20)


class Large(RequestHandler):
    """Handler with a large answer."""

    async def get(self) -> None:
        """Return the answer."""
        self.set_header("Content-Length", str(DOWNLOAD * MIB))
        for _ in range(DOWNLOAD):
            self.write(b"x" * MIB)
            await self.flush()


class Repeat(WebSocketHandler):
    """Handler that echoes messages."""

    async def on_message(self, message: str | bytes) -> None:
        """Return the message."""
        await self.write_message(message)


async def serve(port: int) -> None:
    """Serve as the replica, or as the gate before a replica on that port; print the port."""
    if port == 0:
        application = Application([("/small", Small), ("/large", Large), ("/ws", Repeat)])
        async with listening(application) as own:
            print(own, flush=True)
            await asyncio.Event().wait()
    async with staged(rate=Rate(per_s=1e6, burst=1e6)) as stage:
        stage.directory.set("chat", Openness.READY, (Backend("j", "127.0.0.1", port),))
        print(stage.port, flush=True)
        await asyncio.Event().wait()


async def take(reader: asyncio.StreamReader) -> None:
    """Read one response to its end."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    at = head.index(b"content-length:") + 15
    left = int(head[at : head.index(b"\r\n", at)])
    while left:
        left -= len(await reader.read(min(left, MIB)))


async def ask(port: int, path: str, number: int) -> list[float]:
    """Return the duration of each of some requests over one connection, in milliseconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    took = []
    for _ in range(number):
        began = time.perf_counter()
        writer.write(HEAD.format(path=path).encode())
        await take(reader)
        took.append(1000 * (time.perf_counter() - began))
    writer.close()
    return took


async def talk(port: int, path: str, number: int) -> list[float]:
    """Return the round-trip time of each of some messages, in milliseconds."""
    address = HTTPRequest(f"ws://127.0.0.1:{port}{path}", headers={"Authorization": "token susan"})
    client = await websocket_connect(address)
    took = []
    for _ in range(number):
        began = time.perf_counter()
        await client.write_message("hello")
        await client.read_message()
        took.append(1000 * (time.perf_counter() - began))
    client.close()
    return took


async def measure(port: int, base: str, process: psutil.Process) -> dict[str, float]:
    """Return one round of figures by name for a process that answers on a port."""
    await ask(port, f"{base}/small", 20)
    one = statistics.median(await ask(port, f"{base}/small", ONE))
    spent, began = sum(process.cpu_times()[:2]), time.perf_counter()
    await asyncio.gather(*(ask(port, f"{base}/small", MANY // AT_ONCE) for _ in range(AT_ONCE)))
    rate = MANY / (time.perf_counter() - began)
    work = 1000 * (sum(process.cpu_times()[:2]) - spent) / MANY
    (large,) = await ask(port, f"{base}/large", 1)
    words = statistics.median(await talk(port, f"{base}/ws", ONE))
    return {
        "p50": one,
        "work": work,
        "words": words,
        "rate": rate,
        "bytes": DOWNLOAD / (large / 1000),
    }


NAMES = {
    "p50": ("a request, p50, one at a time", "ms"),
    "work": ("processor time of the responding process, per request", "ms"),
    "words": ("round trip of a websocket message, p50", "ms"),
    "rate": ("requests, sixteen at once", "requests/s"),
    "bytes": ("a download of 256 MiB", "MiB/s"),
}


def started(port: int) -> tuple[subprocess.Popen[str], int]:
    """Start a process that serves, and return it with its port."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve()), "--serve", str(port)],
        stdout=subprocess.PIPE,
        text=True,
    )
    if process.stdout is None:
        raise AssertionError("its output is piped")
    return process, int(process.stdout.readline())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", type=int)
    given = parser.parse_args()
    logging.getLogger("tornado.access").setLevel(logging.CRITICAL)
    if given.serve is not None:
        asyncio.run(serve(given.serve))
        return
    replica, behind = started(0)
    gate, before = started(behind)
    ways = {
        "directly": (behind, "", psutil.Process(replica.pid)),
        "through the gate": (before, f"{PREFIX}s/chat", psutil.Process(gate.pid)),
    }
    runs: dict[tuple[str, str], list[float]] = {}
    try:
        for _ in range(given.rounds):
            for way, place in ways.items():
                for name, value in asyncio.run(measure(*place)).items():
                    runs.setdefault((name, way), []).append(value)
    finally:
        for process in (gate, replica):
            process.kill()
            process.wait()
    show(
        "Services through the gate",
        [
            Figure(f"{what}, {way}", unit, tuple(runs[name, way]))
            for name, (what, unit) in NAMES.items()
            for way in ways
        ],
    )


if __name__ == "__main__":
    main()
