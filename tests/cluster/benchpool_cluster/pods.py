"""Small pods for tests: Python in our base image, run, read and removed."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchpool_cluster.cluster import Cluster
from benchpool_cluster.images import BASE
from benchpool_cluster.processes import NotReady, in_time

Object = dict[str, Any]
WAIT = "import time; print('here', flush=True); time.sleep(120)"
SERVE = """
import http.server as h
h.ThreadingHTTPServer(("", 8000), h.SimpleHTTPRequestHandler).serve_forever()
"""


def python_pod(
    name: str, program: str, *, gpus: int = 0, node: str = "", labels: dict[str, str] | None = None
) -> Object:
    """Return a pod that runs a Python program once; ``node`` pins it by node affinity."""
    container: Object = {
        "name": "main",
        "image": BASE,
        "imagePullPolicy": "Never",
        "command": ["python3", "-u", "-c", program],
    }
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    spec: Object = {
        "containers": [container],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
    }
    if node:
        spec["affinity"] = {"nodeAffinity": _only(node)}
    about = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}


@dataclass(frozen=True, slots=True)
class Space:
    """The namespace of one test."""

    cluster: Cluster
    name: str

    def path(self, kind: str, name: str = "", group: str = "/api/v1") -> str:
        """Return the API path of an object or of all objects of its kind."""
        return f"{group}/namespaces/{self.name}/{kind}" + (f"/{name}" if name else "")

    def create(self, kind: str, body: Object, group: str = "/api/v1") -> Object:
        """Create an object in this namespace."""
        return self.cluster.access.create(self.path(kind, group=group), body)

    def run(self, pod: Object, phase: str = "Running", seconds: float = 60) -> Object:
        """Create a pod and wait for a phase."""
        self.create("pods", pod)
        return self.wait(pod["metadata"]["name"], phase, seconds)

    def wait(self, name: str, phase: str, seconds: float = 60) -> Object:
        """Wait until a pod is in a phase."""
        return self.cluster.access.wait(
            self.path("pods", name), lambda seen: seen["status"].get("phase") == phase, seconds
        )

    def logs(self, name: str) -> str:
        """Return the log of a pod."""
        return self.cluster.access.call("GET", self.path("pods", name) + "/log").text

    def exec(self, name: str, *command: str, seconds: float = 60) -> str:
        """Run a command in a pod and return its output; a failure raises."""
        words = self.cluster.kubectl("--namespace", self.name, "exec", name, "--", *command)
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds)
        if done.returncode:
            raise NotReady(f"{command} in {name}: {done.stdout}{done.stderr}")
        return done.stdout

    def reaches(self, name: str, host: str, port: int = 8000) -> bool:
        """Return whether a pod can open a connection now."""
        program = f"import socket; socket.create_connection(({host!r}, {port}), 1.5)"
        try:
            self.exec(name, "python3", "-c", program)
        except NotReady:
            return False
        return True

    def comes_to(self, wanted: bool, name: str, host: str, port: int = 8000) -> bool:
        """Wait until a pod can open a connection, or no longer can."""
        return in_time(lambda: self.reaches(name, host, port) == wanted, 60)


@contextmanager
def space(cluster: Cluster, labels: dict[str, str] | None = None) -> Iterator[Space]:
    """Yield a fresh namespace, deleted at the end with all its objects."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    about = {"name": name, "labels": labels or {}}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": about}
    cluster.access.create("/api/v1/namespaces", body)
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    cluster.access.wait(account, bool)
    made = Space(cluster, name)
    yield made
    names = [pod["metadata"]["name"] for pod in cluster.access.get(made.path("pods"))["items"]]
    for pod in names:
        cluster.access.delete(made.path("pods", pod))
    for pod in names:  # their GPUs are free only after they are gone
        cluster.access.wait_gone(made.path("pods", pod))
    cluster.access.delete(f"/api/v1/namespaces/{name}")


def _only(node: str) -> Object:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}
