"""A real JupyterHub as a process, with benchpool's roles and tiny servers instead of JupyterLab.

    with real_hub(tmp_path) as hub:
        hub.start_server("susan")

It starts in a few seconds, because it has no proxy: tests use its API and the servers directly.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchpool_support import direct
from benchpool_support.checkout import ROOT
from benchpool_support.loopback import free_port
from benchpool_support.waiting import until

TOKEN = "token-of-the-service-"
"""Start of each service's token; the rest is the service's name."""

END_S = 60.0

CONFIGURATION = """
import json, sys
from jupyterhub.proxy import Proxy

class NoProxy(Proxy):
    should_start = False
    routes = {}

    async def add_route(self, routespec, target, data):
        self.routes[routespec] = {"routespec": routespec, "target": target, "data": data}

    async def delete_route(self, routespec):
        self.routes.pop(routespec, None)

    async def get_all_routes(self):
        return self.routes

SERVER = '''
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

at = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
HTTPServer((at.hostname, at.port), Page).serve_forever()
'''
load_subconfig("roles.py", path=FACTS["roles"])
c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.bind_url = f"http://127.0.0.1:{FACTS['public']}/"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{FACTS['hub']}/hub/"
c.JupyterHub.db_url = f"sqlite:///{FACTS['folder']}/hub.sqlite"
c.JupyterHub.cookie_secret_file = f"{FACTS['folder']}/cookie_secret"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.allow_named_servers = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = f"{FACTS['folder']}/{{username}}"
c.Spawner.cmd = [sys.executable, "-c", SERVER]
c.JupyterHub.services = [
    {"name": name, "api_token": FACTS["token"] + name, "admin": name == "tests"}
    for name in ("benchpool", "reader", "tests")
]
c.JupyterHub.load_roles.append(
    {"name": "reader", "scopes": ["list:users", "read:servers"], "services": ["reader"]}
)
"""


@dataclass(frozen=True)
class RealHub:
    """Running Hub with the services ``benchpool`` (its usual scopes) and ``reader`` (no stops).

    Attributes:
        api: Address of its REST API.
    """

    api: str
    process: subprocess.Popen[bytes]

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request to its API with the rights of an administrator."""
        headers = {"Authorization": f"token {TOKEN}tests"}
        return direct.request(method, f"{self.api}/{path}", headers=headers, timeout=60, **more)

    def servers(self, user: str) -> dict[str, Any]:
        """Return the user's servers by name."""
        servers: dict[str, Any] = self.call("GET", f"users/{user}").json()["servers"]
        return servers

    def start_server(self, user: str, name: str = "") -> None:
        """Start a server of a user, who is added if unknown, and wait until it is ready."""
        self.call("POST", f"users/{user}")
        path = f"users/{user}/servers/{name}" if name else f"users/{user}/server"
        answer = self.call("POST", path)
        assert answer.status_code in (201, 202), answer.text
        until(lambda: self.servers(user).get(name, {}).get("ready"), "the server is ready")

    def wait_stopped(self, user: str, name: str = "") -> None:
        """Wait until a server is gone."""
        until(lambda: self.servers(user), "the server has stopped", holds=lambda it: name not in it)


@contextmanager
def real_hub(folder: Path, more: str = "") -> Iterator[RealHub]:
    """Run a Hub until the end of the block.

    Args:
        folder: Its files, its log and the users' homes.
        more: Text added to its configuration.
    """
    folder.mkdir(parents=True, exist_ok=True)
    facts = {
        "roles": str(ROOT / "hub_config"),
        "folder": str(folder),
        "token": TOKEN,
        "public": free_port(),
        "hub": free_port(),
    }
    file, log = folder / "jupyterhub_config.py", folder / "hub.log"
    file.write_text(f"FACTS = {json.dumps(facts)}\n{CONFIGURATION}\n{more}")
    argv = [sys.executable, "-m", "jupyterhub", "-f", str(file)]
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output, cwd=folder)
    hub = RealHub(f"http://127.0.0.1:{facts['hub']}/hub/api", process)

    def is_ready() -> bool:
        assert process.poll() is None, log.read_text()[-4000:]
        with suppress(httpx.HTTPError):
            return hub.call("GET", "info").is_success
        return False

    try:
        until(is_ready, lambda: log.read_text()[-4000:])
        yield hub
    finally:
        process.terminate()  # it stops its servers
        process.wait(END_S)
