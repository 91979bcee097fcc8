"""A runtime whose workers do what a test says: for what must not depend on real processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchpool_scheduler.runtime import (
    Device,
    DeviceState,
    EndedBy,
    Launch,
    LogChunk,
    NodeFacts,
    Notice,
    WorkerEnded,
    WorkerEvent,
    WorkerId,
    WorkerStarted,
)


def devices(count: int, model: str = "A100", node: str = "localhost") -> tuple[Device, ...]:
    """Return simulated GPUs named ``GPU-0``, ``GPU-1``, ..."""
    return tuple(
        Device(f"GPU-{index}", index, model, node, 81920, simulated=True) for index in range(count)
    )


STARTED = 1_800_000_000.0
"""When workers that run at once began: at the start of ``FakeClock``, so that none has run long."""


class ScriptedRuntime:
    """Keeps what it was told; workers start and end when a test says so.

    Attributes:
        launched: Every launch, by worker. ``alive``: workers that have not ended.
        notices: Every notice, in order.
        facts: What is known of nodes. ``claims``: where volume claims can be used.
        packed: What workers have sent of their results.
    """

    def __init__(self, gpus: Sequence[Device], *, start_at_once: bool = True) -> None:
        self.gpus = tuple(gpus)
        self.start_at_once = start_at_once
        self.launched: dict[WorkerId, Launch] = {}
        self.alive: set[WorkerId] = set()
        self.notices: list[tuple[WorkerId, Notice]] = []
        self.forgotten: list[str] = []
        self.facts: tuple[NodeFacts, ...] = ()
        self.claims: dict[str, frozenset[str]] = {}
        self.packed: dict[tuple[str, int], Path] = {}
        self._inbox: asyncio.Queue[WorkerEvent | None] = asyncio.Queue()
        self._news = asyncio.Condition()

    # ------------------------------------------------------------------ what a test says

    def mark(self, uuid: str, state: DeviceState, note: str | None = None) -> None:
        """Change what is seen of a GPU."""
        self.gpus = tuple(
            replace(gpu, state=state, note=note) if gpu.uuid == uuid else gpu for gpu in self.gpus
        )

    def say(self, event: WorkerEvent) -> None:
        """Tell the service an event as it is."""
        self._inbox.put_nowait(event)

    def begin(self, worker: WorkerId, at: float = 0.0) -> None:
        """Let a launched worker run."""
        self.say(WorkerStarted(worker, at))

    def end(
        self,
        worker: WorkerId,
        exit_code: int | None = 0,
        by: EndedBy = EndedBy.ITSELF,
        at: float = 0.0,
        text: str | None = None,
    ) -> None:
        """Let a worker end."""
        self.alive.discard(worker)
        self.say(WorkerEnded(worker, at, exit_code, by, text))

    async def until_launched(self, count: int) -> list[WorkerId]:
        """Wait until so many workers have been launched; return them in order."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.launched) >= count)
        return list(self.launched)

    async def until_noticed(self, count: int) -> list[tuple[WorkerId, Notice]]:
        """Wait until so many notices were given; return them in order."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.notices) >= count)
        return list(self.notices)

    # ------------------------------------------------------------------ the port

    async def open(self, expected: Sequence[WorkerId]) -> None:
        """Tell of each expected worker whether it runs or is lost."""
        for worker in expected:
            if worker in self.alive:
                self.begin(worker)
            else:
                self.end(worker, None, EndedBy.LOST, text="nobody knows it")

    async def close(self) -> None:
        """End the stream of events."""
        self._inbox.put_nowait(None)

    async def devices(self) -> tuple[Device, ...]:
        """Return the GPUs."""
        return self.gpus

    async def nodes(self) -> tuple[NodeFacts, ...]:
        """Return what is known of nodes."""
        return self.facts

    def nodes_for_claim(self, claim: str) -> frozenset[str] | None:
        """Return where a claim can be used."""
        return self.claims.get(claim)

    def results(self, job: str, worker: int) -> Path | None:
        """Return what a worker has sent."""
        return self.packed.get((job, worker))

    async def start(self, launch: Launch) -> None:
        """Note the launch; the worker runs at once where the test wants that."""
        if launch.worker in self.launched:
            return
        self.launched[launch.worker] = launch
        self.alive.add(launch.worker)
        if self.start_at_once:
            self.begin(launch.worker, STARTED)
        await self._tell()

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        """Note the notice."""
        self.notices.append((worker, notice))
        await self._tell()

    async def events(self) -> AsyncIterator[WorkerEvent]:
        """Yield what the test said."""
        while (event := await self._inbox.get()) is not None:
            yield event

    async def read_log(self, worker: WorkerId, offset: int, limit: int) -> LogChunk:
        """Return an empty log."""
        return LogChunk(offset, b"", ended=worker not in self.alive)

    async def find_log_offset(self, worker: WorkerId, since: float | None) -> int:
        """Return the beginning."""
        return 0

    async def wait_log(self, worker: WorkerId, offset: int, timeout_s: float) -> bool:
        """Return at once."""
        return worker not in self.alive

    async def forget(self, job: str) -> None:
        """Note the job."""
        self.forgotten.append(job)

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()
