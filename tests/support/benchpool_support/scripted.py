"""A runtime with scripted workers, for tests that must not depend on real processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchpool_scheduler.runtime import (
    Device,
    DeviceState,
    Launch,
    NodeFacts,
    Notice,
    Part,
    WorkerId,
)
from benchpool_scheduler.runtime.simulated import SimulatedRuntime
from benchpool_scheduler.runtime.simulated import simulated_devices as devices

__all__ = ["STARTED", "ScriptedRuntime", "devices", "machine"]

STARTED = 1_800_000_000.0
"""Start time of workers that run immediately, in epoch seconds.

It is the start of ``FakeClock``, so that no worker has run long.
"""


def machine(name: str, model: str = "A100", gpus: int = 4) -> tuple[Device, ...]:
    """Return the GPUs of a node of a cluster."""
    return tuple(
        Device(f"{name}/{index}", index, model, name, 81920, simulated=False)
        for index in range(gpus)
    )


class ScriptedRuntime(SimulatedRuntime):
    """Runtime that records its calls; workers start and end when a test calls for it.

    Attributes:
        launched: Launches by worker.
        notices: Notices in order.
        facts: Facts about nodes.
        claims: Nodes on which volume claims can be used.
        packed: Results that workers have sent.
    """

    def __init__(self, gpus: Sequence[Device], *, start_at_once: bool = True) -> None:
        super().__init__(gpus)
        self.start_at_once = start_at_once
        self.by_the_wall = False  # the pool's clock is the real one, which may be past STARTED
        self.launched: dict[WorkerId, Launch] = {}
        self.notices: list[tuple[WorkerId, Notice]] = []
        self.forgotten: list[str] = []
        self.pruned: list[tuple[str, Part]] = []
        self.facts: tuple[NodeFacts, ...] = ()
        self.claims: dict[str, frozenset[str]] = {}
        self.packed: dict[tuple[str, int], Path] = {}
        self._news = asyncio.Condition()

    # ------------------------------------------------------------------ for tests

    def mark(self, uuid: str, state: DeviceState, note: str | None = None) -> None:
        """Change the observed state of a GPU."""
        self.gpus = tuple(
            replace(gpu, state=state, note=note) if gpu.uuid == uuid else gpu for gpu in self.gpus
        )

    async def until_launched(self, count: int) -> list[WorkerId]:
        """Wait until this number of workers has been launched, and return them in order."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.launched) >= count)
        return list(self.launched)

    async def until_noticed(self, count: int) -> list[tuple[WorkerId, Notice]]:
        """Wait until this number of notices has been given, and return them in order."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.notices) >= count)
        return list(self.notices)

    # ------------------------------------------------------------------ the port

    async def nodes(self) -> tuple[NodeFacts, ...]:
        """Return the facts about nodes."""
        return self.facts

    def nodes_for_claim(self, claim: str) -> frozenset[str] | None:
        """Return the nodes on which a claim can be used."""
        return self.claims.get(claim)

    def results(self, job: str, worker: int) -> Path | None:
        """Return the results that a worker has sent."""
        return self.packed.get((job, worker))

    async def run_worker(self, launch: Launch) -> None:
        """Record the launch; the worker runs immediately if the test wants that."""
        self.launched[launch.worker] = launch
        if self.start_at_once:
            self.begin(launch.worker, max(STARTED, time.time()) if self.by_the_wall else STARTED)
        await self._notify()

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        """Record the notice."""
        self.notices.append((worker, notice))
        await self._notify()

    async def forget(self, job: str) -> None:
        """Record the job."""
        self.forgotten.append(job)

    async def prune(self, jobs: Sequence[str], part: Part) -> None:
        """Record the jobs."""
        self.pruned.extend((job, part) for job in jobs)

    async def _notify(self) -> None:
        async with self._news:
            self._news.notify_all()
