"""How fast gated pods come to their nodes, beside plain pods and the cluster's own scheduler.

``python benchmarks/cluster_binding.py [--nodes 1000] [--pods 4000]``: a control plane of its own
with nodes of 8 GPUs that kwok answers for. Three figures:

- plain: the same pods without gates, bound by the kube-scheduler alone; creation is not counted;
- benchpool: pods that wait behind our gate; from the start of the runtime (it lists the cluster and
  the core decides) to the last bind;
- stopping: notices to as many workers that all run, until the API server has taken the last one.

All times are read from the API server: ``nodeName`` of the pods.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from tables import Figure, show

from benchpool_scheduler import contract_kubernetes as names
from benchpool_scheduler.core import plan
from benchpool_scheduler.core.model import (
    GpuId,
    Job,
    JobId,
    Node,
    NodeName,
    Project,
    ProjectName,
    Snapshot,
    Start,
)
from benchpool_scheduler.kube import (
    Appeared,
    Changed,
    Connection,
    NotFound,
    Reflector,
    connect,
    kinds,
)
from benchpool_scheduler.runtime import Device, Notice, WorkerEnded, WorkerId
from benchpool_scheduler.runtime.kubernetes import KubernetesRuntime
from benchpool_scheduler.testing.pods import KWOK, launches, settings_for

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "cluster"))

from benchpool_cluster import kwok_nodes
from benchpool_cluster.control_plane import ControlPlane
from benchpool_cluster.processes import Processes

GPUS = 8
SPACE = "jobs"
STAGES = Path(__file__).resolve().parents[1] / "tests/scheduler/runtime/kubernetes/kwok_stages.yaml"


async def add_nodes(connection: Connection, count: int) -> None:
    """Add nodes without a machine."""
    room = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(GPUS)}

    async def add(number: int) -> None:
        name = f"n{number:04d}"
        node = {
            "metadata": {
                "name": name,
                "annotations": {kwok_nodes.FAKE: "fake"},
                "labels": {"kubernetes.io/hostname": name},
            },
            "spec": {"taints": [{"key": kwok_nodes.FAKE, "value": "fake", "effect": "NoSchedule"}]},
        }
        await connection.create(kinds.NODES, node)
        status = {"status": {"capacity": room, "allocatable": room}}
        await connection.patch(kinds.NODES, name, status, subresource="status")

    await asyncio.gather(*(add(number) for number in range(count)))
    while True:
        nodes = await connection.list(kinds.NODES)
        if len(nodes.items) == count and all(map(kwok_nodes.is_ready, nodes.items)):
            return
        await asyncio.sleep(1)


def pod(run: str, number: int, *, gated: bool) -> dict[str, Any]:
    """Return a pod with one GPU; behind our gate when it is for a lease."""
    container = {
        "name": "main",
        "image": "any",
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    labels = {"run": run}
    spec: dict[str, Any] = {"containers": [container], "tolerations": [KWOK]}
    if gated:
        labels |= {names.ROLE: names.ROLE_NOTEBOOK, names.LEASE: lease(number)}
        spec["schedulingGates"] = [{"name": names.ADMISSION_GATE}]
    return {"metadata": {"name": f"{run}-{number}", "labels": labels}, "spec": spec}


def lease(number: int) -> str:
    """Return the id of a lease."""
    return f"lease{number:021d}"


async def create(connection: Connection, run: str, count: int, *, gated: bool) -> None:
    """Create pods."""
    await asyncio.gather(
        *(
            connection.create(
                kinds.PODS, pod(run, number, gated=gated), namespace=SPACE, as_=msgspec.Raw
            )
            for number in range(count)
        )
    )


async def clear(connection: Connection, labels: str) -> None:
    """Delete pods, and wait until they are gone."""
    left = (await connection.list(kinds.PODS, namespace=SPACE, labels=labels, as_=Seen)).items
    while left:

        async def delete(name: str) -> None:
            with suppress(NotFound):
                await connection.delete(kinds.PODS, name, namespace=SPACE, grace_s=0)

        await asyncio.gather(*(delete(pod.metadata.name) for pod in left))
        left = (await connection.list(kinds.PODS, namespace=SPACE, labels=labels, as_=Seen)).items


class Seen(Struct):
    """As much of a pod as tells whether it is bound, and running."""

    class _Metadata(Struct):
        name: str = ""

    class _Spec(Struct):
        node: str = msgspec.field(default="", name="nodeName")

    class _Status(Struct):
        phase: str = ""

    metadata: _Metadata
    spec: _Spec
    status: _Status

    @property
    def bound(self) -> bool:
        """Whether it has a node."""
        return bool(self.spec.node)

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self.status.phase == "Running"


async def until(
    connection: Connection, labels: str, count: int, holds: Callable[[Seen], bool]
) -> float:
    """Wait until something holds of so many pods; return when (monotonic seconds)."""
    done: set[str] = set()
    reflector: Reflector[Seen] = Reflector(
        connection, kinds.PODS, namespace=SPACE, labels=labels, as_=Seen
    )
    async for change in reflector.changes():
        if isinstance(change, Appeared | Changed) and holds(change.item):
            done.add(change.item.metadata.name)
            if len(done) >= count:
                return time.monotonic()
    raise AssertionError("a reflector never ends")


# --------------------------------------------------------------------------- figures


async def plain(plane: ControlPlane, connection: Connection, count: int) -> float:
    """Return pods per second of the kube-scheduler alone, from its start to its last bind."""
    plane.processes.kill("kube-scheduler")
    await create(connection, "plain", count, gated=False)
    waiting = asyncio.create_task(until(connection, "run=plain", count, lambda it: it.bound))
    await asyncio.sleep(1)
    began = time.monotonic()
    plane.restart("kube-scheduler")
    rate = count / (await waiting - began)
    await clear(connection, "run=plain")
    return rate


def decided(devices: Sequence[Device], count: int) -> list[tuple[str, ...]]:
    """Return the slots that the core gives to as many jobs of one GPU."""
    by_node: dict[str, list[GpuId]] = {}
    for device in devices:
        by_node.setdefault(device.node, []).append(GpuId(device.uuid))
    project = Project(ProjectName("all"), quota=None)
    snapshot = Snapshot(
        nodes=tuple(Node(NodeName(name), tuple(gpus)) for name, gpus in by_node.items()),
        projects=(project,),
        jobs=tuple(Job(JobId(f"job{number}"), project.name) for number in range(count)),
    )
    answer = plan.decide(snapshot)
    return [tuple(c.workers[0].gpus) for c in answer.commands if isinstance(c, Start)]


async def gated(connection: Connection, kubeconfig: Path, count: int) -> tuple[float, float, float]:
    """Return pods per second from the runtime's start to the last bind, and to the last patch.

    The third figure is our own processor time in seconds.
    """
    await create(connection, "gated", count, gated=True)
    waiting = asyncio.create_task(until(connection, "run=gated", count, lambda it: it.bound))
    await asyncio.sleep(1)
    began, cpu = time.monotonic(), time.process_time()
    async with started(kubeconfig) as runtime:
        await runtime.open([])
        places = decided(await runtime.devices(), count)
        for number, slots in enumerate(places):
            await runtime.hold(lease(number), slots)
        while runtime.writes < count:
            await asyncio.sleep(0.02)
        patched = count / (time.monotonic() - began)
        rate = count / (await waiting - began)
    spent = time.process_time() - cpu
    await clear(connection, "run=gated")
    return rate, patched, spent


async def through_jobs(
    connection: Connection, kubeconfig: Path, count: int
) -> tuple[float, float, float]:
    """Return jobs per second to all running; seconds until all were told; until all were gone."""
    labels = f"{names.ROLE}={names.ROLE_WORKER}"
    async with started(kubeconfig) as runtime:
        await runtime.open([])
        places = decided(await runtime.devices(), count)
        ended = asyncio.create_task(_ends(runtime, count))
        waiting = asyncio.create_task(until(connection, labels, count, lambda it: it.running))
        began = time.monotonic()
        workers: list[WorkerId] = []
        for slots in places:
            (launch,) = launches([(slots[0].split("/")[0], ())])
            await runtime.start(replace(launch, gpus=slots))
            workers.append(launch.worker)
        rate = count / (await waiting - began)
        began, before = time.monotonic(), runtime.writes
        for worker in workers:
            await runtime.stop(worker, Notice("pause", 30.0, "others", "room is needed"))
        while runtime.writes - before < count:
            await asyncio.sleep(0.05)
        told = time.monotonic() - began
        await ended
        return rate, told, time.monotonic() - began


async def _ends(runtime: KubernetesRuntime, count: int) -> None:
    async for event in runtime.events():
        count -= isinstance(event, WorkerEnded)
        if not count:
            return


async def idle(kubeconfig: Path, seconds: float) -> float:
    """Return the percentage of a core that the runtime takes while nothing happens."""
    async with started(kubeconfig) as runtime:
        await runtime.open([])
        await runtime.devices()
        await asyncio.sleep(2)
        began = time.process_time()
        for _ in range(int(seconds / 3)):
            await asyncio.sleep(3)
            await runtime.devices()
            await runtime.nodes()
        return 100 * (time.process_time() - began) / seconds


@asynccontextmanager
async def started(kubeconfig: Path) -> AsyncIterator[KubernetesRuntime]:
    """A runtime with a connection of its own."""
    with tempfile.TemporaryDirectory() as state:
        async with connect(kubeconfig) as connection:
            runtime = KubernetesRuntime(
                connection, settings_for(SPACE), state=Path(state), secret=b"benchmark" * 4
            )
            try:
                yield runtime
            finally:
                await runtime.close()


async def measure(plane: ControlPlane, nodes: int, pods: int, jobs: int) -> list[Figure]:
    """Take all figures."""
    file = plane.access.kubeconfig
    async with connect(file, at_once=64) as connection:
        await connection.create(kinds.NAMESPACES, {"metadata": {"name": SPACE}})
        began = time.monotonic()
        await add_nodes(connection, nodes)
        print(f"{nodes} nodes after {time.monotonic() - began:.0f} s", file=sys.stderr)
        alone = await plain(plane, connection, pods)
        print(f"plain: {alone:.0f} pods/s", file=sys.stderr)
        rate, patched, spent = await gated(connection, file, pods)
        print(f"gated: {rate:.0f}, {patched:.0f} pods/s, {spent:.1f} CPU s", file=sys.stderr)
        quiet = await idle(file, 30)
        print(f"idle: {quiet:.2f} %", file=sys.stderr)
        figures = [
            Figure("pods without gates, by the kube-scheduler alone", "pods/s", (alone,)),
            Figure("pods behind our gate, start of the runtime to last bind", "pods/s", (rate,)),
            Figure("the same to the last patch of ours", "pods/s", (patched,)),
            Figure("part of what the kube-scheduler does alone", "", (rate / alone,)),
            Figure("processor time of benchpool in that", "s", (spent,)),
            Figure("processor while nothing happens", "% of a core", (quiet,)),
        ]
        if jobs:
            through, told, gone = await through_jobs(connection, file, jobs)
            figures += [
                Figure(f"{jobs} jobs by the Job controller, all running", "jobs/s", (through,)),
                Figure(f"notices to these {jobs} workers, all sent", "s", (told,)),
                Figure("until all of them were gone", "s", (gone,)),
            ]
    return figures


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=1000)
    options.add_argument("--pods", type=int, default=4000)
    options.add_argument("--jobs", type=int, default=4000)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(Path(folder), Processes(Path(folder) / "run", tied=True))
        try:
            plane.start()
            kwok_nodes.start(plane.processes, plane.access.kubeconfig, STAGES)
            figures = asyncio.run(measure(plane, chosen.nodes, chosen.pods, chosen.jobs))
        finally:
            for name in plane.processes.names():
                plane.processes.kill(name)
    show(f"{chosen.pods} pods of one GPU on {chosen.nodes} nodes", figures)


if __name__ == "__main__":
    main()
