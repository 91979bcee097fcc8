"""A restarted proxy gets its routes immediately, before the Hub's next check."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from benchpool_scheduler.workstation import proxy
from benchpool_support import direct
from benchpool_support.kube_hub import Notebooks
from benchpool_support.loopback import free_port
from benchpool_support.waiting import until

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
TOKEN = "of-the-tests"
CONFIG = """
c.JupyterHub.proxy_class = "benchpool_spawner.watched_proxy.WatchedProxy"
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.JupyterHub.bind_url = "http://127.0.0.1:{port}/"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}/hub/"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.services = [
    {{"name": "pool", "url": "http://127.0.0.1:{service}", "api_token": "{token}", "admin": True}}
]
"""


@contextmanager
def running(argv: list[str], log: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command until the block ends."""
    environ = {**os.environ, "CONFIGPROXY_AUTH_TOKEN": TOKEN, "PYTHONPATH": f"{ROOT / 'spawner'}"}
    with (
        log.open("ab") as output,
        subprocess.Popen(argv, stdout=output, stderr=output, cwd=folder, env=environ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()


def test_restarted_proxy_gets_routes_immediately(
    tmp_path: Path,
) -> None:
    pool, (port, hub, api) = Notebooks(), (free_port() for _ in range(3))
    ports = {"api": api, "port": port, "hub": hub, "service": pool.port, "token": TOKEN}
    (tmp_path / "config.py").write_text(CONFIG.format(**ports))
    found = proxy.find(os.environ) or proxy.install(os.environ)
    front = [*found.command, f"--port={port}", f"--api-port={api}", "--ip=127.0.0.1"]
    front += ["--api-ip=127.0.0.1", f"--default-target=http://127.0.0.1:{hub}"]
    log = tmp_path / "hub.log"

    def status(path: str) -> int:
        try:
            return direct.get(f"http://127.0.0.1:{port}{path}", timeout=30).status_code
        except httpx.HTTPError:
            return 0

    def is_served() -> bool:
        return status("/services/pool/") == 200

    with ExitStack() as stack:
        stack.callback(pool.close)
        first = stack.enter_context(running(front, tmp_path / "proxy.log", tmp_path))
        argv = [sys.executable, "-m", "jupyterhub", "-f", str(tmp_path / "config.py")]
        stack.enter_context(running(argv, log, tmp_path))
        until(is_served, lambda: log.read_text()[-4000:])
        first.kill()
        first.wait(120)
        stack.enter_context(running(front, tmp_path / "proxy.log", tmp_path))
        until(is_served, lambda: log.read_text()[-4000:])
        assert "was restarted and has no routes" in log.read_text()
