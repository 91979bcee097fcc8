"""A real JupyterHub process of any version with the spawner for clusters, for tests.

Its pods are real objects of a real API server. Pods that run without a container have ``Notebooks``
as their servers, so that the Hub sees them start.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from benchpool_scheduler.workstation import proxy
from benchpool_support import direct, hub_environments
from benchpool_support.loopback import free_port
from benchpool_support.waiting import family, processor_seconds, until

ROOT = Path(__file__).parents[3]
TOKEN = "hub-of-the-tests"
"""Token by which the served scheduler recognizes the Hub."""

ADMIN_TOKEN = "admin-of-the-tests"
SERVICE_TOKEN = "service-of-the-tests"
"""Token by which the Hub recognizes the scheduler."""

READY_S = 120.0


def python_with_hub(version: str | None) -> Path:
    """Return a Python with this version of JupyterHub; None: the Python of these tests."""
    return Path(sys.executable) if version is None else hub_environments.python(version)


class Notebooks:
    """Server for all notebook servers, like a single-user server of the Hub's version."""

    def __init__(self) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps({"version": "1"}).encode()
                self.send_response(200 if outer.answers else 503)
                self.send_header("Content-Type", "application/json")
                self.send_header("X-JupyterHub-Version", "6.1.1")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.answers = True
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()


@dataclass
class KubeHub:
    """Hub with its folder; it may be killed and restarted.

    Attributes:
        config: Lines of Python that are appended to ``hub_config/kubernetes.py``.
    """

    folder: Path
    python: Path
    kubeconfig: Path
    scheduler_url: str
    namespace: str
    notebooks: Notebooks
    config: str = ""
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    _ports: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))

    @property
    def url(self) -> str:
        """Return the Hub's address for browsers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def api_url(self) -> str:
        """Return the address of the Hub's API for services."""
        return f"http://127.0.0.1:{self._ports[0]}/hub/api"

    @property
    def log(self) -> str:
        """Return the Hub's log."""
        return (self.folder / "hub.log").read_text(errors="replace")

    def start(self) -> None:
        """Start the Hub and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "config.py").write_text(self._config())
        with (self.folder / "hub.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.python, "-m", "jupyterhub", "-f", str(self.folder / "config.py")],
                cwd=self.folder,
                env=self._environment(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.wait_up()

    def wait_up(self) -> None:
        """Wait until the Hub answers, while it makes progress: it logs, or uses the processor."""
        process = self.process

        def up_or_over() -> bool:
            return self._is_up() or process is None or process.poll() is not None

        def progress() -> object:
            logged = (self.folder / "hub.log").stat().st_size
            return logged, {} if process is None else processor_seconds(family(process.pid))

        until(up_or_over, f"the Hub of {self.folder} answers", READY_S, progress=progress)
        assert process is None or process.poll() is None, f"the Hub ended\n{self.log[-4000:]}"

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stop the Hub; after SIGKILL it cannot clean up, and its proxy continues."""
        if self.process is None:
            return
        self.process.send_signal(number)
        self.process.wait(120)
        self.process = None

    def close(self) -> None:
        """Stop the Hub and its proxy."""
        group = None if self.process is None else self.process.pid
        self.stop()
        pid = self.folder / "proxy.pid"
        if pid.exists():
            with_proxy = int(pid.read_text())
            _end(with_proxy)
        if group is not None:
            _end(-group)

    def until(self, holds: Callable[[], Any], seconds: float = 120.0) -> Any:
        """Return the first true result of ``holds``; fail if the Hub has ended."""

        def look() -> Any:
            if found := holds():
                return found
            ended = self.process is not None and self.process.poll() is not None
            assert not ended, f"the Hub ended\n{self.log[-4000:]}"
            return found

        return until(look, lambda: f"the Hub's log ends\n{self.log[-6000:]}", seconds)

    # ------------------------------------------------------------------ user actions

    def api(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Call the Hub's REST API as an administrator."""
        headers = {"Authorization": f"token {ADMIN_TOKEN}"}
        return direct.request(
            method, f"{self.url}/hub/api/{path}", headers=headers, timeout=60, **options
        )

    def add_user(self, name: str, groups: Sequence[str] = ()) -> None:
        """Add a user and the user's groups."""
        assert self.api("POST", f"users/{name}").status_code in (201, 409)
        for group in groups:
            self.api("POST", f"groups/{group}")
            assert self.api("POST", f"groups/{group}/users", json={"users": [name]}).is_success

    def ask_server(self, user: str, name: str = "", **options: Any) -> httpx.Response:
        """Request a server; the response may arrive before it runs."""
        return self.api("POST", _server(user, name), json=options)

    def stop_server(self, user: str, name: str = "") -> httpx.Response:
        """Stop a server, or cancel its start."""
        return self.api("DELETE", _server(user, name))

    def server(self, user: str, name: str = "") -> dict[str, Any] | None:
        """Return the Hub's model of a server, or None if there is none."""
        found = self.api("GET", f"users/{user}?include_stopped_servers").json()
        servers: dict[str, dict[str, Any]] = found.get("servers") or {}
        one = servers.get(name)
        return one if one is not None and (one["ready"] or one["pending"]) else None

    def wait_ready(self, user: str, name: str = "", seconds: float = 120.0) -> dict[str, Any]:
        """Wait until a server answers."""
        found: dict[str, Any] = self.until(
            lambda: (one := self.server(user, name)) and one["ready"] and one, seconds
        )
        return found

    def wait_gone(self, user: str, name: str = "", seconds: float = 120.0) -> None:
        """Wait until a server has stopped."""
        self.until(lambda: self.server(user, name) is None, seconds)

    def progress(self, user: str, name: str = "") -> Iterator[dict[str, Any]]:
        """Yield the progress events of a start until its end."""
        headers = {"Authorization": f"token {ADMIN_TOKEN}"}
        path = f"{self.url}/hub/api/{_server(user, name)}/progress"
        with direct.stream("GET", path, headers=headers, timeout=60) as answer:
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    yield json.loads(line[5:])

    # ------------------------------------------------------------------ inside

    def _is_up(self) -> bool:
        try:
            return self.api("GET", "info").status_code == 200
        except httpx.HTTPError:
            return False

    def _environment(self) -> Mapping[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'spawner'}:{ROOT / 'scheduler'}",
            "KUBECONFIG": str(self.kubeconfig),
            "BENCHPOOL_SCHEDULER_URL": self.scheduler_url,
            "BENCHPOOL_HUB_TOKEN": TOKEN,
            "BENCHPOOL_SERVICE_TOKEN": SERVICE_TOKEN,
        }

    def _config(self) -> str:
        found = proxy.find(os.environ) or proxy.install(os.environ)
        hub, api = self._ports
        return f"""
load_subconfig("kubernetes.py", path={str(ROOT / "hub_config")!r})
c.JupyterHub.bind_url = {self.url + "/"!r}
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}/hub/"
c.JupyterHub.db_url = "sqlite:///{self.folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{self.folder}/cookie"
c.ConfigurableHTTPProxy.command = {list(found.command)!r}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.ConfigurableHTTPProxy.pid_file = "{self.folder}/proxy.pid"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {{"ada"}}
c.JupyterHub.allow_named_servers = True
c.JupyterHub.services.append({{"name": "tests", "api_token": {ADMIN_TOKEN!r}, "admin": True}})
c.KubeSpawner.namespace = {self.namespace!r}
c.KubeSpawner.pod_connect_ip = "127.0.0.1"
c.KubeSpawner.port = {self.notebooks.port}
c.KubeSpawner.image = "notebook:1"
c.KubeSpawner.tolerations = [{{"key": "kwok.x-k8s.io/node", "operator": "Exists"}}]
c.Spawner.start_timeout = 30
c.Spawner.http_timeout = 15
c.Spawner.poll_interval = 1
# As zero-to-jupyterhub has it: no answer waits for a start.
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 0}}
{self.config}
"""


@contextmanager
def running(hub: KubeHub) -> Iterator[KubeHub]:
    """Run a Hub until the block ends."""
    try:
        hub.start()
        yield hub
    finally:
        hub.close()


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM) if pid > 0 else os.killpg(-pid, signal.SIGTERM)
    except ProcessLookupError:
        return


def _server(user: str, name: str) -> str:
    return f"users/{user}/servers/{name}" if name else f"users/{user}/server"
