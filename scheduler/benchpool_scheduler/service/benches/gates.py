"""Opens the gates of notebook pods: the runtime is told of each lease, where it wants to know."""

from __future__ import annotations

import asyncio
import logging

from benchpool_scheduler.runtime import Gates, Runtime
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.store.records import LeaseRecord

log = logging.getLogger(__name__)


class BenchGates:
    """Does nothing where servers take their GPUs themselves, as on one machine."""

    def __init__(self, ledger: Ledger, runtime: Runtime) -> None:
        self._ledger = ledger
        self._gates = runtime if isinstance(runtime, Gates) else None
        self._tasks: set[asyncio.Task[None]] = set()

    async def hold_all(self) -> None:
        """Tell of every lease in force, after a start."""
        if self._gates is not None:
            for lease in self._ledger.leases():
                await self._gates.hold(lease.id, lease.gpus)

    def returned(self, lease: LeaseRecord) -> None:
        """Tell of a lease that was given back."""
        if self._gates is not None:
            self._gates.release(lease.id)

    def taken(self, lease: LeaseRecord) -> None:
        """Tell of a lease that is new and on disk."""
        if self._gates is None:
            return
        task = asyncio.create_task(self._hold(self._gates, lease))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _hold(self, gates: Gates, lease: LeaseRecord) -> None:
        try:
            await gates.hold(lease.id, lease.gpus)
        except Exception:
            log.exception("the gate of lease %s could not be opened", lease.id)
