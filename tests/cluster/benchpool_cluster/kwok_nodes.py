"""Nodes without a machine: kwok reports them Ready and runs their pods without containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchpool_cluster import build
from benchpool_cluster.access import Access
from benchpool_cluster.control_plane import flags
from benchpool_cluster.processes import Processes

FAKE = "kwok.x-k8s.io/node"
NODES = "/api/v1/nodes"
NOT_READY = "node.kubernetes.io/not-ready"


def start(processes: Processes, kubeconfig: Path, stages: Path | str = "-") -> None:
    """Start kwok, which manages annotated nodes only.

    Without a file of ``stages`` kwok uses its defaults; pods of Jobs then end immediately.
    """
    options = {
        "kubeconfig": kubeconfig,
        "config": stages,  # "-": no file of the user's own
        "manage-all-nodes": "false",
        "manage-nodes-with-annotation-selector": f"{FAKE}=fake",
    }
    processes.start("kwok", [build.find("kwok"), *flags(options)])


def add(access: Access, name: str, *, gpus: int = 8, labels: dict[str, str] | None = None) -> None:
    """Add a node with a taint, so that only pods that tolerate ``kwok`` run on it.

    kwok manages the node once it has its capacity: a node without one would get 1,000 cores.
    """
    size = {"cpu": "64", "memory": "512Gi", "pods": "110", "ephemeral-storage": "1Ti"}
    room = size | {"nvidia.com/gpu": str(gpus)}
    own = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "kwok"}
    node: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": own | (labels or {}),
        },
        "spec": {"taints": [{"key": FAKE, "value": "fake", "effect": "NoSchedule"}]},
    }
    access.create(NODES, node)
    status = {"status": {"capacity": room, "allocatable": room}}
    access.patch(f"{NODES}/{name}/status", status)
    access.patch(f"{NODES}/{name}", {"metadata": {"annotations": {FAKE: "fake"}}})


def wait_ready(access: Access, name: str, seconds: float = 120) -> dict[str, Any]:
    """Wait until a node is Ready and return it."""
    return access.wait(f"{NODES}/{name}", is_ready, seconds)


def remove(access: Access, name: str) -> None:
    """Remove a node, as a cloud does."""
    access.delete(f"{NODES}/{name}")


def is_ready(node: dict[str, Any]) -> bool:
    """Return whether a node reports ready and its controller has noticed.

    A new node has a taint, which the controller removes shortly after the node becomes Ready.
    """
    conditions = node["status"].get("conditions", [])
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and all(one["key"] != NOT_READY for one in node["spec"].get("taints", []))


TOLERATION = {"key": FAKE, "operator": "Exists", "effect": "NoSchedule"}
