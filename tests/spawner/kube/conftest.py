"""A real API server with kwok nodes, a real scheduler service and a real Hub of each version.

Placement belongs to the runtime and is not tested here. ``Admitter`` gives gated pods the node of
their lease, as the runtime does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchpool_cluster import kwok_nodes
from benchpool_cluster.access import Access
from benchpool_cluster.control_plane import ControlPlane
from benchpool_cluster.fixtures import control_plane as control_plane
from benchpool_scheduler.contract.kubernetes import ADMISSION_GATE, LEASE, slot
from benchpool_scheduler.runtime import Device, NodeFacts
from benchpool_support.hub_environments import EARLIER_LINE
from benchpool_support.kube_hub import (
    TOKEN,
    KubeHub,
    Notebooks,
    python_with_hub,
    running,
)
from benchpool_support.loopback import free_port
from benchpool_support.scripted import ScriptedRuntime
from benchpool_support.serving import PEOPLE, Served, served

NODES = ("gpu-1", "gpu-2")
MIG = "nvidia.com/mig-1g.10gb"
CONFIGURATION = """\
version: 1
build: {default: 2, users: {queen: 4, king: 8}, reserve: 8, oversubscribe: true, lend_idle: true}
projects: [{name: p, quota: 0, members: [joe]}]
policy: {grace_s: 1}
"""


def devices() -> tuple[Device, ...]:
    """Return four GPUs on each node and two slices on the second node."""
    gpus = [
        Device(slot(node, i), i, "A100" if node == "gpu-1" else "H100", node, 81920, True)
        for node in NODES
        for i in range(4)
    ]
    slices = [
        Device(slot("gpu-2", i, MIG), 4 + i, "H100 1g.10gb", "gpu-2", 10240, True, resource=MIG)
        for i in range(2)
    ]
    return (*gpus, *slices)


@dataclass
class Scheduler:
    """The scheduler's service, which can be stopped for a while."""

    folder: Path
    service: Served | None = None
    port: int = field(default_factory=free_port)
    runtime: ScriptedRuntime = field(default_factory=lambda: ScriptedRuntime(devices()))
    _stack: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Serve at the same address as before."""
        self.runtime = ScriptedRuntime(devices())
        self.runtime.facts = tuple(NodeFacts(name, labels={"pool": name}) for name in NODES)
        self.service = self._stack.enter_context(
            served(self.folder, configuration=CONFIGURATION, port=self.port, runtime=self.runtime)
        )
        self.service.identity.people = {**PEOPLE, TOKEN: PEOPLE["hub"]}

    def stop(self) -> None:
        """Stop serving."""
        self._stack.close()
        self.service = None

    @property
    def url(self) -> str:
        """Return the address of the service."""
        return f"http://127.0.0.1:{self.port}/services/benchpool"

    def leases(self, user: str) -> list[list[str]]:
        """Return the GPUs of each lease of a user."""
        assert self.service is not None
        return [lease.gpus for lease in self.service.pool.benches.leases(PEOPLE["root"], user)]


@dataclass
class Admitter:
    """Thread that pins gated notebooks to the node of their lease and opens the gate."""

    access: Access
    scheduler: Scheduler
    open: threading.Event = field(default_factory=threading.Event)
    _ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Admit pods until the end is requested."""
        while not self._ended.wait(0.1):
            if self.open.is_set() and self.scheduler.service is not None:
                self._look()

    def end(self) -> None:
        """Stop admitting pods."""
        self._ended.set()

    def _look(self) -> None:
        leases = (
            self.scheduler.service.pool.benches.leases(PEOPLE["root"])
            if self.scheduler.service
            else []
        )
        nodes = {lease.id: lease.gpus[0].split("/")[0] for lease in leases}
        for pod in self.access.get(f"/api/v1/pods?labelSelector={LEASE}")["items"]:
            gates = [gate["name"] for gate in pod["spec"].get("schedulingGates", ())]
            node = nodes.get(pod["metadata"]["labels"][LEASE])
            if ADMISSION_GATE in gates and node is not None:
                self._admit(pod["metadata"], node, gates.index(ADMISSION_GATE))

    def _admit(self, about: dict[str, Any], node: str, gate: int) -> None:
        on = {"key": "metadata.name", "operator": "In", "values": [node]}
        term = {"nodeSelectorTerms": [{"matchFields": [on]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
        patch = [
            {"op": "add", "path": "/spec/affinity", "value": affinity},
            {"op": "remove", "path": f"/spec/schedulingGates/{gate}"},
        ]
        path = f"/api/v1/namespaces/{about['namespace']}/pods/{about['name']}"
        self.access.call("PATCH", path, patch, "json")


@pytest.fixture(scope="module")
def access(control_plane: ControlPlane) -> Iterator[Access]:
    """Yield the API server with two GPU nodes.

    The nodes are removed afterwards, because other tests count the nodes.
    """
    found = control_plane.access
    for name in NODES:
        kwok_nodes.add(found, name, gpus=4, labels={"pool": name})
        kwok_nodes.wait_ready(found, name)
    status = "/api/v1/nodes/gpu-2/status"
    room = {MIG: "2"}
    found.patch(status, {"status": {"capacity": room, "allocatable": room}})
    yield found
    for name in NODES:
        kwok_nodes.remove(found, name)
        found.wait_gone(f"{kwok_nodes.NODES}/{name}", 30)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    """Yield the scheduler's service."""
    made = Scheduler(tmp_path_factory.mktemp("scheduler"))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def admitter(access: Access, scheduler: Scheduler) -> Iterator[Admitter]:
    """Yield the admitter of pods; it runs unless a test closes it."""
    made = Admitter(access, scheduler)
    made.open.set()
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    yield made
    made.end()
    thread.join(60)


@pytest.fixture(scope="module", params=["6.1", EARLIER_LINE])
def hub(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    access: Access,
    scheduler: Scheduler,
    admitter: Admitter,
) -> Iterator[KubeHub]:
    """Yield a Hub of each release line in its own namespace; modules may add ``CONFIG``."""
    version = None if request.param == "6.1" else request.param
    folder = tmp_path_factory.mktemp("hub")
    namespace = f"hub-{request.param.replace('.', '-')}-{folder.name[-1]}-{id(folder) % 10000}"
    about = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    access.create("/api/v1/namespaces", about)
    notebooks = Notebooks()
    made = KubeHub(
        folder,
        python_with_hub(version),
        Path(access.kubeconfig),
        scheduler.url,
        namespace,
        notebooks,
        config=getattr(request.module, "CONFIG", ""),
    )
    with running(made):
        yield made
    notebooks.close()


@pytest.fixture
def full(hub: KubeHub, scheduler: Scheduler) -> Iterator[None]:
    """Let servers of the user king hold all eight GPUs."""
    hub.add_user("king")
    for i in range(2):
        hub.ask_server("king", f"s{i}", gpus=4)
        hub.wait_ready("king", f"s{i}")
    yield
    for i in range(2):
        hub.stop_server("king", f"s{i}")
    hub.until(lambda: scheduler.leases("king") == [])
