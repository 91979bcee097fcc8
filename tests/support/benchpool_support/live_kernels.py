"""Kernels of a running Jupyter server, and functions that run cells in them without a browser."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Mapping
from typing import Any

import httpx

from benchpool_support import terminals
from benchpool_support.waiting import PATIENCE_S, until_async


def start(server: httpx.Client, name: str | None = None, path: str = "") -> str:
    """Start a kernel, by default the server's own, for a file of the server; return its ID."""
    asked = {**({} if name is None else {"name": name}), **({"path": path} if path else {})}
    answer = server.post("api/kernels", json=asked)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def until_connected(server: httpx.Client) -> None:
    """Wait until a page is connected to the server's kernels, and they are idle.

    JupyterLab shows a kernel as idle before it is connected, and loses a cell that is run then.
    """
    await until_async(
        lambda: server.get("api/kernels").json(),
        "all kernels are connected and idle",
        holds=lambda kernels: kernels and all(map(_is_ready, kernels)),
    )


def _is_ready(kernel: Mapping[str, Any]) -> bool:
    return bool(kernel["connections"]) and kernel["execution_state"] == "idle"


async def run(server: httpx.Client, kernel: str, code: str, *, until: str = "idle") -> str:
    """Run a cell until the kernel's state is ``until``, and return the printed text."""
    message = uuid.uuid4().hex
    request = {
        "header": {
            "msg_id": message,
            "msg_type": "execute_request",
            "username": "",
            "session": message,
            "version": "5.3",
        },
        "parent_header": {},
        "metadata": {},
        "channel": "shell",
        "content": {"code": code, "silent": False, "store_history": True, "stop_on_error": True},
    }
    printed = ""
    where = f"api/kernels/{kernel}/channels"
    async with terminals.socket(server, where) as socket, asyncio.timeout(PATIENCE_S):
        await socket.write_message(json.dumps(request))
        while True:
            reply = json.loads(await socket.read_message() or "{}")
            if reply.get("parent_header", {}).get("msg_id") != message:
                continue
            content = reply["content"]
            printed += str(content.get("text", ""))
            if reply["msg_type"] == "status" and content["execution_state"] == until:
                return printed
