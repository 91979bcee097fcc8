"""Replicas of the scheduler as processes on a real API server, and a Hub with fixed users."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import httpx

from benchpool_scheduler.client import Client, Credentials
from benchpool_scheduler.errors import BenchpoolError
from benchpool_support import direct
from benchpool_support.loopback import free_port
from benchpool_support.waiting import PATIENCE_S, until

T = TypeVar("T")

PREFIX = "/services/benchpool/"
SECRET = "s" * 40


@dataclass(frozen=True, slots=True)
class Person:
    """User of the Hub, whose token is the name; ``servers`` are the running ones."""

    name: str
    admin: bool = False
    groups: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()

    @property
    def model(self) -> dict[str, Any]:
        """Return the Hub's model of the user."""
        return {
            "kind": "user",
            "name": self.name,
            "admin": self.admin,
            "groups": list(self.groups),
            "scopes": ["access:services!service=benchpool"],
            "servers": {name: {"name": name, "ready": True} for name in self.servers},
        }


PEOPLE = (Person("susan"), Person("joe"), Person("ada", admin=True))


@contextmanager
def small_hub(people: tuple[Person, ...] = PEOPLE) -> Iterator[str]:
    """Serve the few Hub endpoints that the scheduler uses, and yield the URL of the API."""
    known = {person.name: person for person in people}

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path).removeprefix("/hub/api/")
            token = self.headers.get("Authorization", "").removeprefix("token ")
            body: Any
            if path == "user":
                person = known.get(token)
                body = person.model if person else None
            elif path in ("users", "groups"):
                items = [person.model for person in people] if path == "users" else []
                body = {"items": items, "_pagination": {"next": None}}
            else:
                found = known.get(path.removeprefix("users/"))
                body = found.model if found else None
            data = json.dumps(body if body is not None else {"message": "no"}).encode()
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hub/api"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Replica:
    """Process of the scheduler."""

    name: str
    environ: Mapping[str, str]
    port: int
    log: Path
    process: subprocess.Popen[bytes] = field(init=False)
    _clients: dict[str, Client] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Start the process."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "benchpool_scheduler.app"],
                env=self.environ,
                stdout=log,
                stderr=log,
            )

    @property
    def url(self) -> str:
        """The replica's address."""
        return f"http://127.0.0.1:{self.port}{PREFIX.rstrip('/')}"

    def client(self, person: str) -> Client:
        """Return a client of this replica."""
        if person not in self._clients:
            self._clients[person] = Client(
                Credentials(self.url, person), patience_s=0.0, keyed_patience_s=0.0
            )
        return self._clients[person]

    def send(self, number: int) -> None:
        """Send a signal to the process."""
        self.process.send_signal(number)

    def end(self) -> int:
        """Stop the process cleanly and return its exit status."""
        if self.process.poll() is None:
            self.send(signal.SIGTERM)
        return self.ended()

    def ended(self) -> int:
        """Wait until the process has ended and return its exit status."""
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """Kill the process."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def answers(self) -> bool:
        """Return whether its health check succeeds."""
        try:
            return direct.get(f"{self.url}/api/v1/health", timeout=30).is_success
        except httpx.HTTPError:
            return False

    def serves(self, person: str = "ada") -> bool:
        """Return whether requests about the pool succeed here, by this replica or by another."""
        try:
            self.client(person).status()
        except BenchpoolError:
            return False
        return True

    def leads(self) -> bool:
        """Return whether it has logged that it leads."""
        return b"INFO benchpool_scheduler: leading " in self.log.read_bytes()


@dataclass
class Site:
    """Shared settings of the replicas of one installation."""

    hub: str
    kubeconfig: Path
    namespace: str
    folder: Path
    configuration: str
    more: Mapping[str, str] = field(default_factory=dict)
    replicas: list[Replica] = field(default_factory=list)

    def start(self, name: str | None = None) -> Replica:
        """Start a replica."""
        port, name = free_port(), name or f"replica-{len(self.replicas)}"
        state = self.folder / "state"
        state.mkdir(exist_ok=True)
        file = self.folder / "benchpool.yaml"
        file.write_text(self.configuration)
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{self._as_in_the_image()}:{os.environ.get('PYTHONPATH', '')}",
            "BENCHPOOL_MODE": "kubernetes",
            "BENCHPOOL_KUBECONFIG": str(self.kubeconfig),
            "BENCHPOOL_NAMESPACE": self.namespace,
            "BENCHPOOL_RELEASE_NAMESPACE": self.namespace,
            "BENCHPOOL_POD_NAME": name,
            "BENCHPOOL_POD_IP": "127.0.0.1",
            "BENCHPOOL_STATE": str(state),
            "BENCHPOOL_CONFIG": str(file),
            "BENCHPOOL_DEFAULT_IMAGE": "job",
            "BENCHPOOL_JOB_IMAGE": "agent",
            "BENCHPOOL_URL_FOR_WORKERS": "http://127.0.0.1:1/services/benchpool/",
            "BENCHPOOL_TOLERATIONS": "nvidia.com/gpu,kwok.x-k8s.io/node",
            "BENCHPOOL_SERVER_SECRET": SECRET,
            "BENCHPOOL_LEADER_LEASE_S": "15",
            "JUPYTERHUB_API_URL": self.hub,
            "JUPYTERHUB_API_TOKEN": secrets.token_hex(8),
            "JUPYTERHUB_BASE_URL": "/",
            "JUPYTERHUB_SERVICE_NAME": "benchpool",
            "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
            "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{port}",
            "JUPYTERHUB_CLIENT_ID": "service-benchpool",
            **self.more,
        }
        replica = Replica(name, environ, port, self.folder / f"{name}-{port}.log")
        self.replicas.append(replica)
        return replica

    def _as_in_the_image(self) -> Path:
        """Return a folder that hides a package that the image lacks and that is slow to import."""
        folder = self.folder / "image"
        folder.mkdir(exist_ok=True)
        (folder / "kubernetes_validate.py").write_text("raise ImportError('only for checks')\n")
        return folder

    def started(self, name: str | None = None) -> Replica:
        """Start a replica and wait until it serves the pool."""
        replica = self.start(name)
        until(replica.serves, lambda: f"{replica.name} serves\n{replica.log.read_text()[-4000:]}")
        return replica

    def close(self) -> None:
        """Stop the remaining replicas."""
        for replica in self.replicas:
            replica.kill()
