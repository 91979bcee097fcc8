"""Runtime port without processes: a subclass decides when workers begin and end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from benchpool_scheduler.runtime import (
    Device,
    EndedBy,
    Launch,
    LogChunk,
    NodeFacts,
    Notice,
    Part,
    WorkerEnded,
    WorkerEvent,
    WorkerId,
    WorkerStarted,
)


def simulated_devices(
    count: int, model: str = "A100", node: str = "localhost", memory_mib: int | None = 81920
) -> tuple[Device, ...]:
    """Return simulated GPUs named ``GPU-0``, ``GPU-1``, ... on one node."""
    return tuple(
        Device(f"GPU-{index}", index, model, node, memory_mib, simulated=True)
        for index in range(count)
    )


class SimulatedRuntime:
    """Runtime that records live workers, and reports their starts and ends to the service.

    Attributes:
        alive: Workers that were started and have not ended.
    """

    def __init__(self, gpus: Sequence[Device]) -> None:
        self.gpus = tuple(gpus)
        self.alive: set[WorkerId] = set()
        self._known: set[WorkerId] = set()
        self._events: asyncio.Queue[WorkerEvent | None] = asyncio.Queue()

    # ------------------------------------------------------------------ events of workers

    def report(self, event: WorkerEvent) -> None:
        """Report an event to the service."""
        self._events.put_nowait(event)

    def begin(self, worker: WorkerId, at: float = 0.0) -> None:
        """Report that a worker runs."""
        self.report(WorkerStarted(worker, at))

    def end(
        self,
        worker: WorkerId,
        exit_code: int | None = 0,
        by: EndedBy = EndedBy.ITSELF,
        at: float = 0.0,
        text: str | None = None,
    ) -> None:
        """Report that a worker has ended."""
        self.alive.discard(worker)
        self.report(WorkerEnded(worker, at, exit_code, by, text))

    # ------------------------------------------------------------------ the port

    async def open(self, expected: Sequence[WorkerId]) -> None:
        """Report for each expected worker whether it runs or is lost."""
        self._forget_end()
        for worker in expected:
            if worker in self.alive:
                self.begin(worker)
            else:
                self.end(worker, None, EndedBy.LOST, text="it is not running")

    async def close(self) -> None:
        """End the stream of events."""
        self._events.put_nowait(None)

    def _forget_end(self) -> None:
        """Remove the end marker of a stream that was not read to its end."""
        kept = [self._events.get_nowait() for _ in range(self._events.qsize())]
        for event in kept:
            if event is not None:
                self._events.put_nowait(event)

    async def devices(self) -> tuple[Device, ...]:
        """Return the GPUs."""
        return self.gpus

    async def nodes(self) -> tuple[NodeFacts, ...]:
        """Return nothing: nodes are known only by their GPUs."""
        return ()

    def denied_devices(self, gpus: Sequence[str]) -> Sequence[tuple[int, int]]:
        """Return nothing: there are no device files."""
        return ()

    def nodes_for_claim(self, claim: str) -> frozenset[str] | None:
        """Return None: every node can use the claim."""
        return None

    async def start(self, launch: Launch) -> None:
        """Start a worker, once."""
        if launch.worker in self._known:
            return
        self._known.add(launch.worker)
        self.alive.add(launch.worker)
        await self.run_worker(launch)

    async def run_worker(self, launch: Launch) -> None:
        """Simulate a worker that is started for the first time; the default does nothing."""

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        """Ignore the notice."""

    async def events(self) -> AsyncIterator[WorkerEvent]:
        """Yield the events, in order, until ``close``."""
        while (event := await self._events.get()) is not None:
            yield event

    async def read_log(self, worker: WorkerId, offset: int, limit: int) -> LogChunk:
        """Return an empty log."""
        return LogChunk(offset, b"", ended=worker not in self.alive)

    async def find_log_offset(self, worker: WorkerId, since: float | None) -> int:
        """Return 0."""
        return 0

    async def wait_log(self, worker: WorkerId, offset: int, timeout_s: float) -> bool:
        """Return at once whether the log has ended, since nothing is written to it."""
        return worker not in self.alive

    async def forget(self, job: str) -> None:
        """Do nothing: there are no files."""

    async def prune(self, jobs: Sequence[str], part: Part) -> None:
        """Do nothing: there are no files."""
