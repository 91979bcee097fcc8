"""A real Jupyter server with our extension, in a process of its own, for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchpool_scheduler.workstation import jupyter
from benchpool_support import direct
from benchpool_support.waiting import until

TOKEN = "token-of-the-page"
START_S = 120.0


@dataclass(frozen=True)
class NotebookServer:
    """Running server: its address, its root folder, and a logged-in client."""

    url: str
    root: Path
    page: httpx.Client

    def anonymous(self) -> httpx.Client:
        """Return a client that is not logged in."""
        return direct.Client(base_url=self.url, timeout=30)


@contextmanager
def notebook_server(folder: Path, environ: Mapping[str, str]) -> Iterator[NotebookServer]:
    """Run a server that serves ``folder/root``, with these variables in addition to ours."""
    root, runtime = folder / "root", folder / "runtime"
    for each in (root, runtime, folder / "home"):
        each.mkdir(parents=True, exist_ok=True)
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith("JUPYTER")},
        "HOME": str(folder / "home"),
        "JUPYTER_RUNTIME_DIR": str(runtime),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        **environ,
    }
    options = {
        "ServerApp.root_dir": str(root),
        "ServerApp.port": "0",
        "ServerApp.ip": "127.0.0.1",
        "IdentityProvider.token": TOKEN,
        "ServerApp.open_browser": "False",
        "ServerApp.allow_root": "True",
        "ServerApp.allow_unauthenticated_access": "False",
        "ServerApp.jpserver_extensions": "{'benchpool': True}",
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            jupyter.command("jupyter_server", *words),
            env=env,
            stdout=log,
            stderr=log,
            preexec_fn=_hang_up_as_usual,
        )
    try:
        url = _address(process, runtime, folder / "server.log")
        with direct.Client(
            base_url=url, headers={"Authorization": f"token {TOKEN}"}, timeout=30
        ) as page:
            yield NotebookServer(url, root, page)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop a server as its spawner does, because the thread of a request may never end.

    AnyIO ends a thread through the task of its request, which the server's loop does not finish.
    """
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(120)


def _hang_up_as_usual() -> None:
    """Restore SIGHUP, so that closed terminals end their programs even under ``nohup``."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _address(process: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    def look() -> str | None:
        assert process.poll() is None, f"the notebook server ended:\n{log.read_text()}"
        for path in runtime.glob(f"jpserver-{process.pid}.json"):
            with suppress(ValueError):  # the file is half written
                url: str = json.loads(path.read_text())["url"]
                if _answers(url):
                    return url
        return None

    return str(until(look, lambda: f"the notebook server starts:\n{log.read_text()}", START_S))


def _answers(url: str) -> bool:
    try:
        return direct.get(f"{url}api", timeout=30).status_code == 200
    except httpx.TransportError:
        return False
