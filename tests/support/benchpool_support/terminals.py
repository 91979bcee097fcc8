"""Input for a terminal of a running JupyterLab."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from benchpool_support.waiting import PATIENCE_S


@asynccontextmanager
async def socket(server: httpx.Client, path: str) -> AsyncIterator[WebSocketClientConnection]:
    url = str(server.base_url.join(path)).replace("http", "ws", 1)
    connection = await websocket_connect(
        HTTPRequest(url, headers={"Authorization": server.headers["Authorization"]})
    )
    try:
        yield connection
    finally:
        connection.close()


async def typed(server: httpx.Client, *lines: str) -> str:
    """Type lines into a new terminal of JupyterLab and return its output up to their end."""
    # The shell assembles the mark, so that the echo of the input is not mistaken for it.
    name, shown = await left_open(server, *lines, "echo the-''end", until="the-end")
    server.delete(f"api/terminals/{name}")
    return shown


async def left_open(server: httpx.Client, *lines: str, until: str) -> tuple[str, str]:
    """Type lines into a new terminal and leave it open; return its name and its output so far."""
    name = server.post("api/terminals").json()["name"]
    shown = ""
    async with (
        socket(server, f"terminals/websocket/{name}") as terminal,
        asyncio.timeout(PATIENCE_S),
    ):
        for line in lines:
            await terminal.write_message(json.dumps(["stdin", f"{line}\r"]))
        while until not in shown:
            message = json.loads(await terminal.read_message() or "[]")
            shown += message[1] if message[:1] == ["stdout"] else ""
    return name, shown
