"""A control plane with many nodes that kwok simulates, and the processor time of its parts.

The benchmarks on Kubernetes use it. It has no events of its own: nodes are ready from the start,
send no heartbeats, and are trusted for a day. etcd does not wait for the disk
(``--unsafe-no-fsync``), and controllers have no rate limit.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import checkout  # noqa: F401
import msgspec
from tables import Figure

from benchpool_cluster import build, kwok_nodes
from benchpool_cluster.control_plane import ControlPlane, Timing, flags
from benchpool_cluster.processes import Processes
from benchpool_scheduler.kube import Connection, Kind, KubeUnavailable, kinds

ROOT = Path(__file__).resolve().parents[1]
GPUS = 8
DAY_S = 86_400
WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
VERSION = re.compile(rb'"resourceVersion":"(\d+)"')
PARTS = ("kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler", "kwok")
STAGES = ROOT / "tests/scheduler/runtime/kubernetes/kwok_stages.yaml"
AT_ONCE = """\
    - key: '.metadata.deletionTimestamp'
      operator: 'Exists'
  next:
    finalizers:
      empty: true
    delete: true
"""
AFTER_SAVING = """\
    - key: '.metadata.deletionTimestamp'
      operator: 'Exists'
    - key: '.status.phase'
      operator: 'In'
      values: ['Running']
  delay:
    durationMilliseconds: 20000
  next:
    statusTemplate: |
      phase: Failed
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-gone
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - key: '.metadata.deletionTimestamp'
      operator: 'Exists'
    - key: '.status.phase'
      operator: 'NotIn'
      values: ['Running']
  next:
    delete: true
"""
"""Stages of a pod: a deleted pod saves for 20 s, fails, and goes when its Job has counted it."""

SILENT = """\
---
# Nodes are made as they shall be: nothing is ever played for one.
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: node-never
spec:
  resourceRef:
    apiGroup: v1
    kind: Node
  selector:
    matchExpressions:
    - key: '.metadata.labels["benchmark/never"]'
      operator: 'Exists'
  next:
    statusTemplate: ''
---
apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  podPlayStageParallelism: 16
  podsOnNodeSyncParallelism: 8
"""


@contextmanager
def large_cluster() -> Iterator[ControlPlane]:
    """Yield a control plane that ends with this block, or with this process."""
    # SIGTERM has to remove the folder too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="benchpool-cluster-") as name:
        folder = Path(name)
        timing = Timing(node_grace=DAY_S, toleration=DAY_S)
        plane = ControlPlane(folder, Processes(folder / "run", tied=True), timing=timing)
        try:
            plane.start()
            yield plane
        finally:
            plane.processes.kill_all()


def start_kwok(plane: ControlPlane) -> None:
    """Let pods run on the existing nodes."""
    stages = plane.folder / "stages.yaml"
    usual = STAGES.read_text()
    assert AT_ONCE in usual
    stages.write_text(usual.replace(AT_ONCE, AFTER_SAVING) + SILENT)
    options = {
        "kubeconfig": plane.access.kubeconfig,
        "config": stages,
        "manage-all-nodes": "false",
        "manage-nodes-with-annotation-selector": f"{kwok_nodes.FAKE}=fake",
        "node-lease-duration-seconds": 0,
    }
    plane.processes.start("kwok", [build.find("kwok"), *flags(options)])


async def add_nodes(connection: Connection, count: int) -> None:
    """Add ready nodes without a machine, and wait until pods may run on all of them."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    await asyncio.gather(
        *(connection.create(kinds.NODES, _node(number, at)) for number in range(count))
    )
    while True:
        nodes = (await connection.list(kinds.NODES)).items
        if sum(map(_takes_pods, nodes)) >= count:
            return
        await asyncio.sleep(0.5)


def _node(number: int, at: str) -> dict[str, Any]:
    name = f"n{number:04d}"
    room = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(GPUS)}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "",
        "lastHeartbeatTime": at,
        "lastTransitionTime": at,
    }
    return {
        "metadata": {
            "name": name,
            "annotations": {kwok_nodes.FAKE: "fake"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
        },
        "spec": {"taints": [{"key": kwok_nodes.FAKE, "value": "fake", "effect": "NoSchedule"}]},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def _takes_pods(node: dict[str, Any]) -> bool:
    taints = [one["key"] for one in node["spec"].get("taints", ())]
    return kwok_nodes.is_ready(node) and taints == [kwok_nodes.FAKE]


# --------------------------------------------------------------------------- counting


class Counting:
    """Counter of a watch's events, which decodes only what it needs; see ``counting``."""

    def __init__(self) -> None:
        self.total = 0
        self._news = asyncio.Event()

    def add(self, more: int) -> None:
        """Add to the count."""
        self.total += more
        self._news.set()

    async def reach(self, count: int, *, patience_s: float = 900.0) -> float:
        """Return the time (monotonic seconds) when ``count`` events were counted.

        Raises:
            TimeoutError: There were fewer after ``patience_s`` seconds.
        """
        async with asyncio.timeout(patience_s):
            while self.total < count:
                self._news.clear()
                await self._news.wait()
        return time.monotonic()


@asynccontextmanager
async def counting(
    connection: Connection,
    kind: Kind,
    event: str,
    *,
    namespace: str | None = None,
    labels: str = "",
    fields: str = "",
    holding: bytes = b"",
) -> AsyncIterator[Counting]:
    """Count events of a kind from now on: ADDED is a new match, DELETED is the end of a match.

    Only objects whose JSON contains the bytes ``holding`` count.

    An observer that decoded each pod would use more of the machine than the observed parts.
    """
    path = kind.path(namespace)
    chosen = {"labelSelector": labels, "fieldSelector": fields}
    chosen = {key: value for key, value in chosen.items() if value}
    head = await connection.request("GET", path, params={**chosen, "limit": "1"})
    version = msgspec.json.decode(head)["metadata"]["resourceVersion"].encode()
    found = Counting()
    begins = f'{{"type":"{event}"'.encode()

    async def read() -> None:
        nonlocal version
        while True:  # a busy API server closes watches
            now = {"watch": "1", "resourceVersion": version.decode(), "timeoutSeconds": "3600"}
            with suppress(KubeUnavailable):
                async with connection.stream(path, {**chosen, **now}) as chunks:
                    rest = b""
                    async for chunk in chunks:
                        *lines, rest = (rest + chunk).split(b"\n")
                        for line in lines:
                            if seen := VERSION.search(line):
                                version = seen[1]
                        found.add(
                            sum(line.startswith(begins) and holding in line for line in lines)
                        )

    reading = asyncio.create_task(read())
    try:
        yield found
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


# --------------------------------------------------------------------------- processor time


@dataclass
class Spending:
    """Processor time of each part of the cluster since this object's creation, and API calls."""

    plane: ControlPlane
    more: Mapping[str, int] = field(default_factory=dict)
    _before: Counter[str] = field(default_factory=Counter, init=False)
    _calls: Counter[str] = field(default_factory=Counter, init=False)

    def __post_init__(self) -> None:
        """Start to measure."""
        self._before, self._calls = Counter(self._seconds()), _calls(self.plane)

    def figures(self, count: int = 1) -> list[Figure]:
        """Return milliseconds of processor time for each of ``count`` things."""
        now = self._seconds()
        return [
            Figure(f"processor time of {name}", "ms each", (1000 * spent / count,))
            for name, spent in ((it, now[it] - self._before[it]) for it in now)
            if spent > 0
        ]

    def calls(self, most: int = 12) -> list[tuple[str, int]]:
        """Return the most frequent calls of the API server, with their numbers."""
        return (_calls(self.plane) - self._calls).most_common(most)

    @staticmethod
    def written(plane: ControlPlane, resource: str) -> int:
        """Return how often objects of a resource were written so far."""
        words = ((name.split(), often) for name, often in _calls(plane).items())
        return sum(n for w, n in words if w[1].startswith(resource) and w[0] in WRITES)

    def _seconds(self) -> dict[str, float]:
        running = self.plane.processes
        pids = {name: running.pid(name) for name in PARTS if running.is_running(name)}
        return {name: cpu_s(pid) for name, pid in {**pids, **self.more}.items()}


def cpu_s(pid: int) -> float:
    """Return the processor time of a process with all its threads, in seconds."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    """Return the present memory of a process, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(it.split()[1]) for it in lines if it.startswith("VmRSS")) / 1024


def _calls(plane: ControlPlane) -> Counter[str]:
    access = plane.access
    found: Counter[str] = Counter()
    for line in access.call("GET", "/metrics").text.splitlines():
        if line.startswith("apiserver_request_total{"):
            labels = dict(_labels(line))
            sub = f"/{labels['subresource']}" if labels.get("subresource") else ""
            name = f"{labels['verb']} {labels['resource']}{sub} {labels['code']}"
            found[name] += int(float(line.rpartition(" ")[2]))
    return found


def _labels(line: str) -> Sequence[tuple[str, str]]:
    inside = line.partition("{")[2].rpartition("}")[0]
    pairs = (one.partition("=") for one in inside.split(","))
    return [(key, value.strip('"')) for key, _, value in pairs]
