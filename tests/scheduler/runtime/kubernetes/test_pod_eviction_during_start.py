"""Pods that are deleted or evicted at random instants of their start, on real nodes.

``BENCHPOOL_TAKEN=100`` produces the figure of docs/performance.md. ``BENCHPOOL_SEED`` selects
another sequence of events.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter

import pytest

from benchpool_scheduler.kube import KubeNotFound, kinds
from benchpool_scheduler.runtime import EndedBy, WorkerEnded, WorkerId
from benchpool_support.pods import launches
from benchpool_support.real_pods import RealStand
from benchpool_support.waiting import until_async

COUNT = int(os.environ.get("BENCHPOOL_TAKEN", "24"))
SEED = int(os.environ.get("BENCHPOOL_SEED", "1"))
LANES: tuple[tuple[str, tuple[int, ...]], ...] = (
    *((node, (gpu,)) for node in ("node-1", "node-2") for gpu in (0, 1)),
    *((node, ()) for node in ("node-1", "node-2") for _ in range(2)),
)
"""Places for consecutive starts, with one GPU or without GPUs."""
LATEST_S = 3.0
"""Latest instant of a removal after the pod is bound, in seconds; most starts are over by then."""
GRACES: tuple[int | None, ...] = (None, 0, 1)
"""Grace periods of deletions, in seconds; None for the pod's own."""

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(120 + 10 * COUNT)]


async def until_bound(real: RealStand, worker: WorkerId) -> str:
    """Wait until the pod of a worker has a node and return its name, or "" if the worker ended."""
    found: list[str] = []

    async def look() -> bool:
        pods = await real.pods(worker.job)
        found[:] = [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]
        return bool(found) or any(
            isinstance(event, WorkerEnded) and event.worker == worker for event in real.events
        )

    await until_async(look)
    return found[0] if found else ""


async def take(real: RealStand, name: str, chance: random.Random) -> str:
    """Delete or evict a pod; return the action, or "over before" if the pod was gone."""
    space = real.settings.namespace
    try:
        if chance.random() < 0.5:
            grace_s = chance.choice(GRACES)
            await real.connection.delete(kinds.PODS, name, namespace=space, grace_s=grace_s)
            return f"deleted, grace {grace_s}"
        about = {"name": name, "namespace": space}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about}
        path = kinds.PODS.path(space, name, "eviction")
        await real.connection.request("POST", path, data=json.dumps(body).encode())
    except KubeNotFound:
        return "over before"
    return "evicted"


async def one(
    real: RealStand, place: tuple[str, tuple[int, ...]], chance: random.Random
) -> tuple[str, WorkerEnded]:
    """Start a worker, remove its pod at a random instant, and return the action and the end."""
    (launch,) = launches([place], argv=("sleep", "60"), grace_s=1.0)
    await real.start([launch])
    how = "refused by its node"
    if name := await until_bound(real, launch.worker):
        await asyncio.sleep(chance.uniform(0.0, LATEST_S))  # a random instant on purpose
        how = await take(real, name, chance)
    (ended,) = await real.ended(launch.worker)
    await real.runtime.forget(launch.worker.job)
    return how, ended


async def test_pod_deleted_during_start_fails_no_job(real: RealStand) -> None:
    print(f"seed {SEED}")
    chances = [random.Random(f"{SEED}/{number}") for number in range(COUNT)]
    numbers = iter(range(COUNT))
    ends: list[tuple[str, WorkerEnded]] = []

    async def some(place: tuple[str, tuple[int, ...]]) -> None:
        for number in numbers:
            ends.append(await one(real, place, chances[number]))

    async with asyncio.TaskGroup() as group:
        for lane in LANES:
            group.create_task(some(lane))
    print(Counter((how, str(ended.by)) for how, ended in ends))
    began = {event.worker for event in real.events if not isinstance(event, WorkerEnded)}
    print(f"{len(ends)} taken, {len(ends) - len(_of(ends) & began)} of them before they had begun")
    failed = [one for one in ends if one[1].by not in (EndedBy.LOST, EndedBy.NOT_TAKEN)]
    assert failed == []
    assert len(ends) == COUNT


def _of(ends: list[tuple[str, WorkerEnded]]) -> set[WorkerId]:
    return {ended.worker for _, ended in ends}
