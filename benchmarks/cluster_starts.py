"""Waiting times of users on a cluster: for a notebook's pod, and for a job's worker.

``python benchmarks/cluster_starts.py [--runs 20] [--only notebooks|training]``, as root, on the
test cluster with two real nodes (`make cluster` keeps it; otherwise it is started and removed).
Images are on the nodes.

- notebook: from the request for a server to its container's start, by two Hubs with the same
  configuration that alternate. One has plain KubeSpawner, whose pod requests a GPU and is bound by
  the kube-scheduler. The other has benchpool's spawner, whose pod has a lease and a gate;
- training: the shipped chart and images; a job is sent through the proxy. From the request to its
  response, when the job is durable, and from there to its worker's running container.

Times are taken when a watch of pods reports the change, so they include the way back from the
kubelet.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import queue
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import checkout  # noqa: F401
import httpx
from tables import Figure, show

from benchpool_cluster import releases, sharing
from benchpool_cluster.access import Access
from benchpool_cluster.cluster import Cluster
from benchpool_cluster.images import BASE
from benchpool_cluster.sites import Site
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.kubernetes import JOB
from benchpool_scheduler.kube import connect
from benchpool_scheduler.resources.pools import NODE_POOLS, POOL_SETTINGS, PROJECTS
from benchpool_support import kubernetes
from benchpool_support.kube_hub import (
    ADMIN_TOKEN,
    SERVICE_TOKEN,
    KubeHub,
    Notebooks,
    free_port,
    running,
)
from benchpool_support.replicas import Site as Schedulers
from benchpool_support.waiting import until

CONFIGURATION = """\
version: 1
build: {default: 1}
projects: [{name: p, quota: 4, members: [ada]}]
"""
POOL: dict[str, Any] = {
    "version": 1,
    "build": {"default": 0},
    "projects": [{"name": "research", "quota": 8, "members": ["admin"]}],
}
SERVER = f"""
c.KubeSpawner.image = {BASE!r}
c.KubeSpawner.image_pull_policy = "Never"
c.KubeSpawner.cmd = ["sleep", "3600"]
c.KubeSpawner.uid = 1000
c.Spawner.start_timeout = 60
"""
PLAIN = """
c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
c.KubeSpawner.extra_resource_limits = {"nvidia.com/gpu": "1"}
"""


class Watch:
    """Record of when the pods of a namespace are first seen with all their containers running."""

    def __init__(self, access: Access, namespace: str) -> None:
        self._seen: queue.Queue[tuple[float, dict[str, Any]]] = queue.Queue()
        self._known: set[str] = set()
        self._path = f"/api/v1/namespaces/{namespace}/pods?watch=true"
        self._access = access
        threading.Thread(target=self._follow, daemon=True).start()

    def next(self, seconds: float = 60) -> tuple[float, dict[str, Any]]:
        """Return the time (monotonic) when the next pod was running, and the pod."""
        try:
            return self._seen.get(timeout=seconds)
        except queue.Empty:
            pods = self._access.get(self._path.partition("?")[0])["items"]
            raise AssertionError(
                [(pod["metadata"]["name"], pod["status"]) for pod in pods]
            ) from None

    def _follow(self) -> None:
        # It ends with its namespace, or with the process.
        with (
            suppress(httpx.HTTPError),
            self._access.client() as client,
            client.stream("GET", self._path, timeout=None) as answer,
        ):
            for line in answer.iter_lines():
                self._note(time.monotonic(), json.loads(line)["object"])

    def _note(self, now: float, pod: dict[str, Any]) -> None:
        uid = pod["metadata"].get("uid")
        states = pod.get("status", {}).get("containerStatuses", [])
        if uid in self._known or not states or not all("running" in s["state"] for s in states):
            return
        self._known.add(uid)
        self._seen.put((now, pod))


@contextmanager
def namespace(access: Access, prefix: str) -> Iterator[str]:
    """Yield a namespace that is deleted at the end with all its content."""
    name = f"{prefix}-{secrets.token_hex(3)}"
    about = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    access.create("/api/v1/namespaces", about)
    try:
        yield name
    finally:
        access.delete(f"/api/v1/namespaces/{name}")
        access.wait_gone(f"/api/v1/namespaces/{name}", 120)


def notebooks(access: Access, folder: Path, runs: int) -> tuple[Figure, Figure]:
    """Start servers with both spawners in turn."""

    async def define() -> None:
        async with connect(access.kubeconfig) as connection:
            await kubernetes.define(connection)

    asyncio.run(define())
    servers, port = Notebooks(), free_port()
    with namespace(access, "plain") as one, namespace(access, "bench") as other:
        scheduler = f"http://127.0.0.1:{port}/services/benchpool"
        python, config = Path(sys.executable), Path(access.kubeconfig)
        plain = KubeHub(
            folder / "plain", python, config, scheduler, one, servers, config=SERVER + PLAIN
        )
        ours = KubeHub(folder / "ours", python, config, scheduler, other, servers, config=SERVER)
        site = Schedulers(
            ours.api_url,
            config,
            other,
            folder,
            CONFIGURATION,
            more={
                "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{port}",
                "JUPYTERHUB_API_TOKEN": SERVICE_TOKEN,
            },
        )
        with running(plain), running(ours):
            replica = site.start()
            replica.port = port
            try:
                until(lambda: replica.serves(ADMIN_TOKEN))
                times = _in_turns(access, {one: (plain, {}), other: (ours, {"gpus": 1})}, runs)
            finally:
                site.close()
        asyncio.run(_forget(access))
    servers.close()
    return (
        Figure("notebook, plain KubeSpawner: request to running", "s", tuple(times[one])),
        Figure("notebook, benchpool: request to running", "s", tuple(times[other])),
    )


async def _forget(access: Access) -> None:
    async with connect(access.kubeconfig) as connection:
        await kubernetes.empty(connection, *(r.kind for r in (PROJECTS, NODE_POOLS, POOL_SETTINGS)))


def _in_turns(
    access: Access, hubs: dict[str, tuple[KubeHub, dict[str, Any]]], runs: int
) -> dict[str, list[float]]:
    """Start and stop a server of each Hub, one after the other; the first ones do not count."""
    watches = {name: Watch(access, name) for name in hubs}
    times: dict[str, list[float]] = {name: [] for name in hubs}
    for turn in range(runs + 1):
        for name, (hub, options) in hubs.items():
            user = f"u{turn}"
            hub.add_user(user)
            began = time.monotonic()
            hub.ask_server(user, **options)
            at, _ = watches[name].next()
            hub.wait_ready(user)
            hub.stop_server(user)
            hub.wait_gone(user)
            if turn:
                times[name].append(at - began)
    return times


def training(cluster: Cluster, folder: Path, runs: int) -> tuple[Figure, Figure]:
    """Send jobs of one worker to an installed release, one after the other."""
    releases.load_images(cluster)
    release = releases.Release(cluster.access, f"benchpool-{secrets.token_hex(3)}", folder)
    try:
        release.install(releases.values() | {"pool": POOL})
        site = Site.of(cluster, release)
        site.wait_ready()
        client = site.client("admin")
        watch, answered, worked = Watch(cluster.access, site.workspace), [], []
        for turn in range(runs + 1):
            began = time.monotonic()
            job = client.submit(JobSubmission(entry=CommandEntry(["sleep", "2"]), gpus=1)).id
            accepted = time.monotonic()
            at, pod = watch.next()
            assert pod["metadata"]["labels"][JOB] == job, pod["metadata"]
            site.wait_job(job, "succeeded")
            if turn:
                answered.append(accepted - began)
                worked.append(at - accepted)
    finally:
        release.take_away()
    worked.sort()
    print(f"accepted to running, 95th percentile: {worked[int(len(worked) * 0.95) - 1]:.2f} s")
    return (
        Figure("job: request to durable answer, by the proxy", "s", tuple(answered)),
        Figure("job: accepted to worker running", "s", tuple(worked)),
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", choices=("notebooks", "training"))
    chosen = parser.parse_args()
    use = sharing.join()
    try:
        with tempfile.TemporaryDirectory() as folder:
            figures: list[Figure] = []
            if chosen.only != "training":
                figures += notebooks(use.cluster.access, Path(folder), chosen.runs)
            if chosen.only != "notebooks":
                figures += training(use.cluster, Path(folder), chosen.runs)
            show("Starts on a cluster of two nodes", figures)
    finally:
        use.leave()


if __name__ == "__main__":
    main()
