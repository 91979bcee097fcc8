"""The whole cluster with two real nodes, started in the order of dependencies.

A machine runs one cluster in one folder; a second call finds the first call's cluster.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchpool_cluster import (
    addresses,
    debian,
    images,
    kwok_nodes,
    network,
    places,
    volumes,
)
from benchpool_cluster.access import Access
from benchpool_cluster.control_plane import ControlPlane
from benchpool_cluster.node import PAUSE, Node
from benchpool_cluster.processes import Processes

NODES = 2
GPUS = 4
LOG = logging.getLogger(__name__)


class CannotRun(Exception):
    """Error: this machine cannot run a cluster with real nodes."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Running cluster."""

    plane: ControlPlane
    nodes: tuple[Node, ...]

    @property
    def access(self) -> Access:
        """Return the administrator's access."""
        return self.plane.access

    @property
    def processes(self) -> Processes:
        """Return all processes by name: ``kube-apiserver``, ``kubelet-1``, ``coredns`` and so
        on.
        """
        return self.plane.processes

    def node(self, name: str) -> Node:
        """Return a real node."""
        return next(node for node in self.nodes if node.name == name)

    def load_image(self, archive: Path, name: str) -> None:
        """Load an image into every real node; pods use it with ``imagePullPolicy: Never``."""
        images.load(archive, name, [node.socket for node in self.nodes])

    def kubectl(self, *words: str) -> list[str]:
        """Return the command line of ``kubectl`` for this cluster."""
        return self.plane.kubectl(*words)

    def start(self) -> None:
        """Start everything; missing programs are built just before their use."""
        debian.need(debian.NODES)
        network.prepare(self.plane.folder, len(self.nodes))
        self._timed("the control plane answers", self.plane.start)
        self._timed("the nodes are Ready", self._start_nodes)
        self._timed("services and names work", self._start_network)
        self._timed("images are on the nodes", self._load_base)
        self._timed("volumes are made", lambda: volumes.start(self.plane))
        kwok_nodes.start(self.processes, self.access.kubeconfig)
        self.wait_ready()
        (self.plane.folder / "ready").touch()

    def wait_ready(self) -> None:
        """Wait until every real node is Ready with its GPUs."""
        for node in self.nodes:
            self.access.wait(f"{kwok_nodes.NODES}/{node.name}", _has_gpus)

    def stop(self) -> None:
        """Stop and remove everything, so that no trace of a cluster remains."""
        for name in ("network-policies", "local-path-provisioner", "kwok", "kube-proxy", "coredns"):
            self.processes.kill(name)
        for node in self.nodes:
            node.stop()
        self.plane.stop()
        self.processes.kill_all()
        network.remove(self.plane.folder, len(self.nodes))
        shutil.rmtree(self.plane.folder, ignore_errors=True)

    def _start_nodes(self) -> None:
        pause = images.pause()
        for node in self.nodes:
            node.start_containerd()
        self.load_image(pause, PAUSE)
        for node in self.nodes:
            node.start_kubelet()
            node.start_gpus(GPUS)
        for node in self.nodes:
            kwok_nodes.wait_ready(self.access, node.name)

    def _start_network(self) -> None:
        network.start_names(self.plane)
        network.start_proxy(self.plane)
        package = Path(__file__).resolve().parents[1]
        command = ["env", f"PYTHONPATH={package}", sys.executable]
        command += ["-m", "benchpool_cluster.network_policies", str(self.access.kubeconfig)]
        self.processes.start("network-policies", command)

    def _load_base(self) -> None:
        self.load_image(images.base(), images.BASE)

    def _timed(self, what: str, step: Callable[[], None]) -> None:
        began = time.monotonic()
        step()
        LOG.warning("%s (%.1f s)", what, time.monotonic() - began)


def find() -> Cluster | None:
    """Return the cluster that runs on this machine, or None."""
    made = of_this_machine()
    ready = (made.plane.folder / "ready").exists()
    return made if ready and made.processes.is_running("kube-apiserver") else None


def up() -> Cluster:
    """Start a cluster, after removal of the remains of an interrupted run.

    ``sharing`` decides who may call this and ``down``, and when.
    """
    if os.geteuid() or not sys.platform.startswith("linux"):
        raise CannotRun("a cluster with real nodes needs Linux and root")
    made = of_this_machine()
    down()
    try:
        made.start()
    except BaseException:
        if not os.environ.get("BENCHPOOL_CLUSTER_KEEP"):
            made.stop()
        raise
    return made


def down() -> None:
    """Stop the cluster of this machine, or remove its remains."""
    made = of_this_machine()
    if made.plane.folder.exists() or network.is_there():
        made.stop()


def of_this_machine() -> Cluster:
    """Return the only cluster that this machine may run, running or not."""
    folder = places.state()
    names = [f"node-{number}" for number in range(1, NODES + 1)]
    processes = Processes(folder / "run")
    plane = ControlPlane(folder, processes, address=addresses.CONTROL_PLANE, nodes=names)
    return Cluster(plane, tuple(Node(number, plane) for number in range(1, NODES + 1)))


def _has_gpus(node: dict[str, object]) -> bool:
    allocatable = json.loads(json.dumps(node))["status"].get("allocatable", {})
    return kwok_nodes.is_ready(node) and allocatable.get("nvidia.com/gpu") == str(GPUS)
