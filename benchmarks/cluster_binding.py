"""Binding rate of gated pods, beside plain pods and the cluster's own scheduler.

``python benchmarks/cluster_binding.py [--nodes 1000] [--pods 4000]``: a control plane of its own
with nodes of 8 GPUs that kwok simulates. Figures:

- plain: pods without gates, from the start of the kube-scheduler, which binds them alone, to the
  last bind; the pods existed before;
- benchpool: the same pods behind our gate; from the start of the runtime (it lists the cluster
  and the core decides) to the last bind;
- the processor time of each part on the two processors in each case.

All times are read from the API server: a pod counts as bound when it has a node.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import checkout  # noqa: F401
import msgspec
from large_cluster import (
    GPUS,
    Spending,
    add_nodes,
    counting,
    large_cluster,
    start_kwok,
)
from tables import Figure, show

from benchpool_cluster.control_plane import ControlPlane
from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.core import plan
from benchpool_scheduler.core.model import (
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Project,
    ProjectName,
    Snapshot,
    Start,
)
from benchpool_scheduler.kube import Connection, KubeNotFound, connect, kinds
from benchpool_scheduler.runtime import Device
from benchpool_scheduler.runtime.kubernetes import KubernetesRuntime
from benchpool_support.pods import KWOK, settings_for

SPACE = "jobs"


def pod(run: str, number: int, *, gated: bool) -> dict[str, Any]:
    """Return a pod with one GPU; a gated pod is for a lease."""
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
    """Return the ID of a lease."""
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


async def clear(connection: Connection, run: str, count: int) -> None:
    """Delete the pods of a run, and wait until they are gone."""

    async def delete(number: int) -> None:
        with suppress(KubeNotFound):
            await connection.delete(kinds.PODS, f"{run}-{number}", namespace=SPACE, grace_s=0)

    async with counting(
        connection, kinds.PODS, "DELETED", namespace=SPACE, labels=f"run={run}"
    ) as gone:
        await asyncio.gather(*map(delete, range(count)))
        await gone.reach(count)


def unbound(connection: Connection, run: str) -> Any:
    """Count the pods of a run that are bound from now on."""
    return counting(
        connection, kinds.PODS, "DELETED",
        namespace=SPACE, labels=f"run={run}", fields="spec.nodeName=",
    )  # fmt: skip


# --------------------------------------------------------------------------- figures


async def plain(
    plane: ControlPlane, connection: Connection, count: int
) -> tuple[float, list[Figure]]:
    """Return pods per second of the kube-scheduler alone, and the processor time of each part."""
    plane.processes.kill("kube-scheduler")
    await create(connection, "plain", count, gated=False)
    async with unbound(connection, "plain") as bound:
        await asyncio.sleep(1)
        spending, began = Spending(plane), time.monotonic()
        plane.restart("kube-scheduler")
        rate = count / (await bound.reach(count) - began)
        figures = spending.figures(count)
    await clear(connection, "plain", count)
    return rate, [Figure(f"{it.what}, plain", it.unit, it.runs) for it in figures]


def decided(devices: Sequence[Device], count: int) -> list[tuple[str, ...]]:
    """Return the slots that the core assigns to ``count`` jobs of one GPU."""
    by_node: dict[str, list[GpuId]] = {}
    for device in devices:
        by_node.setdefault(device.node, []).append(GpuId(device.uuid))
    project = Project(ProjectName("all"), quota=None)
    snapshot = Snapshot(
        nodes=tuple(Node(NodeName(name), tuple(gpus)) for name, gpus in by_node.items()),
        projects=(project,),
        jobs=tuple(JobFacts(JobId(f"job{number}"), project.name) for number in range(count)),
    )
    answer = plan.decide(snapshot)
    return [tuple(c.workers[0].gpus) for c in answer.commands if isinstance(c, Start)]


async def gated(
    plane: ControlPlane, connection: Connection, count: int
) -> tuple[float, float, list[Figure]]:
    """Return pods per second to the last bind and to our last patch, and the processor times."""
    await create(connection, "gated", count, gated=True)
    async with unbound(connection, "gated") as bound:
        await asyncio.sleep(1)
        spending, began, cpu = Spending(plane), time.monotonic(), time.process_time()
        async with started(plane.access.kubeconfig) as runtime:
            await runtime.open([])
            places = decided(await runtime.devices(), count)
            for number, slots in enumerate(places):
                await runtime.hold(lease(number), slots)
            while runtime.writes < count:
                await asyncio.sleep(0.02)
            patched = count / (time.monotonic() - began)
            rate = count / (await bound.reach(count) - began)
        ours = Figure(
            "processor time of benchpool", "ms each", (1000 * (time.process_time() - cpu) / count,)
        )
        figures = [ours, *spending.figures(count)]
    await clear(connection, "gated", count)
    return rate, patched, [Figure(f"{it.what}, gated", it.unit, it.runs) for it in figures]


@asynccontextmanager
async def started(kubeconfig: Path) -> AsyncIterator[KubernetesRuntime]:
    """Yield a runtime with a connection of its own."""
    with tempfile.TemporaryDirectory() as state:
        async with connect(kubeconfig) as connection:
            runtime = KubernetesRuntime(
                connection, settings_for(SPACE), state=Path(state), secret=b"benchmark" * 4
            )
            try:
                yield runtime
            finally:
                await runtime.close()


async def measure(plane: ControlPlane, nodes: int, pods: int, runs: int) -> list[Figure]:
    """Take all figures; plain and gated runs alternate."""
    alone: list[float] = []
    ours: list[float] = []
    patched: list[float] = []
    spent: list[Figure] = []
    async with connect(plane.access.kubeconfig, at_once=64) as connection:
        await connection.create(kinds.NAMESPACES, {"metadata": {"name": SPACE}})
        began = time.monotonic()
        await add_nodes(connection, nodes)
        start_kwok(plane)
        print(f"{nodes} nodes after {time.monotonic() - began:.0f} s", file=sys.stderr)
        for _ in range(runs):
            rate, of_plain = await plain(plane, connection, pods)
            print(f"plain: {rate:.0f} pods/s", file=sys.stderr)
            alone.append(rate)
            rate, last, of_gated = await gated(plane, connection, pods)
            print(f"gated: {rate:.0f}, {last:.0f} pods/s", file=sys.stderr)
            ours.append(rate)
            patched.append(last)
            spent = [*of_plain, *of_gated]
    part = tuple(a / b for a, b in zip(ours, alone, strict=True))
    return [
        Figure("pods without gates, by the kube-scheduler alone", "pods/s", tuple(alone)),
        Figure("pods behind our gate, start of the runtime to last bind", "pods/s", tuple(ours)),
        Figure("the same to the last patch of ours", "pods/s", tuple(patched)),
        Figure("part of what the kube-scheduler does alone", "", part),
        *spent,
    ]


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=1000)
    options.add_argument("--pods", type=int, default=4000)
    options.add_argument("--runs", type=int, default=1)
    chosen = options.parse_args()
    if chosen.pods > chosen.nodes * GPUS:
        options.error(f"{chosen.nodes} nodes hold {chosen.nodes * GPUS} pods, not {chosen.pods}")
    with large_cluster() as plane:
        figures = asyncio.run(measure(plane, chosen.nodes, chosen.pods, chosen.runs))
    show(f"{chosen.pods} pods of one GPU on {chosen.nodes} nodes", figures)


if __name__ == "__main__":
    main()
