"""Gates of notebook pods, which the runtime opens once the pod's lease exists."""

from __future__ import annotations

import asyncio
import logging

from benchpool_scheduler.runtime import Gates, Runtime
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.store.records import LeaseRecord

log = logging.getLogger(__name__)


class BenchGates:
    """Notifies the runtime of leases; does nothing where servers take their GPUs themselves."""

    def __init__(self, ledger: Ledger, runtime: Runtime) -> None:
        self._ledger = ledger
        self._gates = runtime if isinstance(runtime, Gates) else None
        self._tasks: set[asyncio.Task[None]] = set()

    async def hold_all(self) -> None:
        """Notify the runtime of every active lease, after a start."""
        if self._gates is not None:
            for lease in self._ledger.leases():
                await self._gates.hold(lease.id, lease.gpus)

    def returned(self, lease: LeaseRecord) -> None:
        """Notify the runtime of a released lease."""
        if self._gates is not None:
            self._gates.release(lease.id)

    def taken(self, lease: LeaseRecord) -> None:
        """Notify the runtime of a new lease that is on disk."""
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
