"""``benchpool`` in JupyterLab's terminal, in login shells and after ``!`` in a notebook."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from pathlib import Path

import httpx
import pytest

from benchpool_support.terminals import socket, typed
from benchpool_support.waiting import PATIENCE_S
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PROGRAMS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def server(up: RunningWorkstation) -> httpx.Client:
    """Return a client of the API of susan's notebook server."""
    up.start_server("susan")
    return httpx.Client(
        base_url=f"{up.ready['url']}user/susan/",
        headers={"Authorization": f"token {up.token_of('susan')}"},
        timeout=60,
        trust_env=False,
    )


def found(*programs: str) -> str:
    return f"for each in {' '.join(programs)}; do echo found $(command -v $each); done"


async def test_terminal_finds_benchpool_and_notebook_python(server: httpx.Client) -> None:
    shown = await typed(server, found("benchpool", "python3"), "benchpool quota")
    assert f"found {PROGRAMS}/benchpool" in shown
    assert f"found {PROGRAMS}/python3" in shown
    assert "susan" in shown
    assert "2" in shown.rpartition("benchpool quota")[2]


@pytest.mark.parametrize("shell", ["bash -lc", "sh -lc"])
async def test_login_shell_finds_benchpool(server: httpx.Client, shell: str) -> None:
    shown = await typed(server, f"{shell} '{found('benchpool', 'python3')}'")
    assert f"found {PROGRAMS}/benchpool" in shown
    assert f"found {PROGRAMS}/python3" in shown


async def test_virtual_environment_keeps_benchpool_on_path(
    up: RunningWorkstation, server: httpx.Client, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    bashrc = up.state / "homes" / "susan" / ".bashrc"
    bashrc.write_text(f"export VIRTUAL_ENV={tmp_path} PATH={tmp_path}/bin:$PATH\n")
    try:
        shown = await typed(server, found("benchpool", "python3"))
    finally:
        bashrc.unlink()
    assert f"found {PROGRAMS}/benchpool" in shown
    assert f"found {tmp_path}/bin/python3" in shown


async def test_notebook_cell_finds_benchpool(server: httpx.Client) -> None:
    kernel = server.post("api/kernels", json={}).json()["id"]
    code = "!command -v benchpool python3\n!benchpool quota"
    message = {
        "header": {
            "msg_id": uuid.uuid4().hex,
            "msg_type": "execute_request",
            "username": "",
            "session": uuid.uuid4().hex,
            "version": "5.4",
        },
        "parent_header": {},
        "metadata": {},
        "content": {"code": code, "silent": False, "allow_stdin": False},
        "channel": "shell",
    }
    shown = ""
    async with (
        socket(server, f"api/kernels/{kernel}/channels") as channels,
        asyncio.timeout(PATIENCE_S),
    ):
        await channels.write_message(json.dumps(message))
        while True:
            reply = json.loads(await channels.read_message() or "{}")
            if reply.get("msg_type") == "stream":
                shown += reply["content"]["text"]
            if reply.get("msg_type") == "execute_reply":
                break
    server.delete(f"api/kernels/{kernel}")
    assert f"{PROGRAMS}/benchpool" in shown
    assert f"{PROGRAMS}/python3" in shown
    assert "susan" in shown
