"""Nodes with a fault of their own, which take no starts until a trial start works there.

The table is ``core.lifecycle.draining``. This module supplies its events, its pauses and the report
to administrators.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from benchpool_scheduler.core.lifecycle import draining
from benchpool_scheduler.core.lifecycle.draining import Intake, Sign
from benchpool_scheduler.phrases import REMEDIES
from benchpool_scheduler.runtime import (
    EndedBy,
    Runtime,
    StartFault,
    Trials,
    WorkerEnded,
    WorkerEvent,
    WorkerStarted,
)
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DrainedNode:
    """A node that is not open: its intake, since when, and how often it was closed."""

    intake: Intake
    since: float
    closings: int
    fault: StartFault


class Drain:
    """Tracks the nodes that take no starts.

    Args:
        want_pass: Called when a node takes jobs again.

    Attributes:
        sleep: Waits for the given seconds before a trial.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        runtime: Runtime,
        want_pass: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._runtime = runtime
        self._want_pass = want_pass
        self._nodes: dict[str, DrainedNode] = {}
        self._trials: dict[str, asyncio.Task[None]] = {}
        self.sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def see(self, event: WorkerEvent) -> None:
        """Update a node from a worker event, before the event leads to a pass."""
        if not isinstance(self._runtime, Trials):
            return
        if isinstance(event, WorkerEnded) and event.by is EndedBy.MACHINE_FAULT:
            what = event.text or "a worker could not start"
            self._put(self._node_of(event), Sign.FAULT, StartFault(event.fault, what))
        elif isinstance(event, WorkerStarted):
            self._put(self._node_of(event), Sign.STARTED)

    async def close(self) -> None:
        """Cancel the running trials."""
        tasks = list(self._trials.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _node_of(self, event: WorkerStarted | WorkerEnded) -> str | None:
        attempt = self._ledger.attempt(event.worker.job, event.worker.attempt)
        workers = () if attempt is None else attempt.workers
        return next((w.node for w in workers if w.index == event.worker.worker), None)

    def _put(self, node: str | None, sign: Sign, fault: StartFault | None = None) -> None:
        if node is None:
            return
        now = self._observed.settings.clock.now()
        known = self._nodes.get(node)
        if known is None:
            if fault is None:
                return
            known = DrainedNode(Intake.OPEN, now, 0, fault)
        intake = draining.after(known.intake, sign)
        if intake is known.intake:
            return
        if intake is Intake.OPEN:
            self._nodes.pop(node, None)
        else:
            closed = intake is Intake.CLOSED
            self._nodes[node] = replace(
                known,
                intake=intake,
                closings=known.closings + closed,
                fault=fault or known.fault,
            )
            if closed and node not in self._trials:
                task = asyncio.create_task(self._try_until_it_works(node))
                self._trials[node] = task
        self._publish()

    async def _try_until_it_works(self, node: str) -> None:
        try:
            while (known := self._nodes.get(node)) and known.intake is Intake.CLOSED:
                await self.sleep(draining.pause_s(known.closings))
                self._put(node, Sign.DUE)
                fault = await self._try(node)
                self._put(node, Sign.WORKED if fault is None else Sign.FAILED, fault)
        finally:
            del self._trials[node]
        self._want_pass()

    async def _try(self, node: str) -> StartFault | None:
        if not isinstance(self._runtime, Trials):
            return None
        try:
            return await self._runtime.try_start(node)
        except Exception as error:
            log.exception("a trial start on %s failed", node)
            return StartFault(None, str(error))

    def _publish(self) -> None:
        """Exclude these nodes from passes, and report them to administrators."""
        closed = {
            name: node for name, node in self._nodes.items() if not draining.takes(node.intake)
        }
        names = frozenset(closed)
        if names != self._observed.now.drained:
            self._observed.put(replace(self._observed.now, drained=names))
        sentences = [self._sentence(name, node) for name, node in closed.items()]
        self._observed.report("starts", " ".join(sentences) or None)

    def _sentence(self, name: str, node: DrainedNode) -> str:
        remedy = REMEDIES.get(node.fault.number, REMEDIES[None])
        remedy = remedy.format(state=self._observed.settings.state, pid=os.getpid())
        return (
            f"No job starts on {name}: {node.fault.text}. {remedy}. Jobs wait, and none has failed "
            f"because of it. A start is retried at least every {draining.PAUSE_S[1]:.0f} s; jobs "
            "go on when one succeeds."
        )
