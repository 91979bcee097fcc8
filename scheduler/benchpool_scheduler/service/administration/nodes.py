"""Node settings by administrators: drain, uncordon, note, maintenance window.

The rule is ``core.lifecycle.closing``. A setting is on disk before the request is answered, and
applies from the next pass. Running jobs and benches on the machine continue.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace as with_fields
from datetime import UTC, datetime

from msgspec.structs import replace

from benchpool_scheduler.contract.nodes import (
    MaintenanceWindow,
    NodeIntake,
    NodeNote,
    NodeOpened,
    NodeReason,
    NodeWindow,
    PoolNode,
)
from benchpool_scheduler.errors import InvalidInput, NotFound
from benchpool_scheduler.phrases import one_line
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed import closings
from benchpool_scheduler.service.observed.inventory import UNKNOWN
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.shielded import shielded
from benchpool_scheduler.store.records import NodeRecord, NodeWindowRecord, SaveNodes

NAMED = 8
"""Maximum number of machines named in the error about an unknown one."""

LONGEST_S = 60.0
"""Maximum interval between checks of the windows, in seconds; the clock may be set meanwhile."""


class NodeAdmin:
    """The machines of the pool and their settings by administrators.

    Args:
        want_pass: Called when machines accept other jobs than before.
    """

    def __init__(
        self, ledger: Ledger, observed: SchedulerState, want_pass: Callable[[], None]
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._want_pass = want_pass
        self._changed = asyncio.Event()

    def restore(self) -> None:
        """Apply the saved settings after a start."""
        self._put({node.name: node for node in self._ledger.saved_nodes})

    async def run(self) -> None:
        """Close and open machines when their windows begin and end; runs until cancelled."""
        while True:
            self._changed.clear()
            self._put(self._observed.now.nodes)
            now = self._observed.settings.clock.now()
            ahead = [at for at in closings.changes(self._observed.now.nodes) if at > now]
            wait_s = min([LONGEST_S, *(at - now for at in ahead)])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()

    # ------------------------------------------------------------------ reading

    def nodes(self, caller: Caller) -> list[PoolNode]:
        """Return the machines of the pool by name, for any caller."""
        return [self._view(name) for name in sorted(self._observed.now.inventory.nodes)]

    def _view(self, name: str) -> PoolNode:
        seen, ledger = self._observed.now, self._ledger
        node = seen.nodes.get(name, NodeRecord(name))
        gpus = [device.uuid for device in seen.inventory.nodes[name]]
        leases = {ledger.leased[gpu].id for gpu in gpus if gpu in ledger.leased}
        holders = ledger.counters.holders
        jobs = {holders[gpu] for gpu in gpus if gpu in holders}
        held = sum(gpu in ledger.leased or gpu in holders for gpu in gpus)
        intake, text = self._intake(name, node)
        window = node.window
        return PoolNode(
            name=name,
            intake=intake,
            text=text,
            gpus=len(gpus),
            held=held,
            jobs=len(jobs),
            benches=len(leases),
            note=node.note,
            since=None if node.drained is None else _moment(node.drained),
            by=node.by or None,
            reason=node.reason or None,
            window=None
            if window is None
            else MaintenanceWindow(
                _moment(window.begins), _moment(window.ends), window.reason, window.by
            ),
            unfinished=0
            if window is None
            else sum(self._goes_beyond(job, window.begins) for job in jobs),
        )

    def _intake(self, name: str, node: NodeRecord) -> tuple[NodeIntake, str]:
        seen = self._observed.now
        text = closings.words(node, closed=name in seen.closed)
        if node.drained is not None:
            return NodeIntake.DRAINING, f"{name} {text}: no job starts there, running jobs go on."
        if name in seen.closed:
            return NodeIntake.MAINTENANCE, f"{name} {text}: no job starts there."
        if name in seen.drained or not seen.inventory.facts.get(name, UNKNOWN).ready:
            return NodeIntake.NOT_READY, (
                f"{name} is not ready: no job starts there until it is; "
                "`benchpool status` shows details."
            )
        return NodeIntake.OPEN, f"{name} {text}." if text else f"{name} accepts jobs."

    def _goes_beyond(self, job: str, begins: float) -> bool:
        """Return whether a running job may continue beyond an instant."""
        record = self._ledger.job(job)
        if record is None or record.spec.time_limit_s is None:
            return True
        attempt = self._ledger.attempt(record.id, record.attempt)
        started = None if attempt is None else attempt.started or attempt.decided
        return started is None or started + record.spec.time_limit_s > begins

    # ------------------------------------------------------------------ changes

    async def drain(self, caller: Caller, name: str, request: NodeReason) -> PoolNode:
        """Drain a machine: nothing more starts there.

        Errors: Forbidden, NotFound, InvalidInput, Unavailable.
        """
        now, reason = self._observed.settings.clock.now(), _words(request.reason)

        def drained(node: NodeRecord) -> NodeRecord:
            since = now if node.drained is None else node.drained
            return replace(node, drained=since, reason=reason, by=caller.name)

        return await self._change(caller, name, drained)

    async def open(self, caller: Caller, name: str, request: NodeOpened) -> PoolNode:
        """Let jobs and benches start there again. Errors: Forbidden, NotFound, Unavailable."""
        return await self._change(
            caller,
            name,
            lambda node: replace(node, drained=None, reason="", by="", window=None),
        )

    async def note(self, caller: Caller, name: str, request: NodeNote) -> PoolNode:
        """Set the note that users see. Errors: Forbidden, NotFound, Unavailable."""
        text = one_line(request.text)
        return await self._change(caller, name, lambda node: replace(node, note=text))

    async def maintain(self, caller: Caller, name: str, request: NodeWindow) -> PoolNode:
        """Set its maintenance window. Errors: Forbidden, NotFound, InvalidInput, Unavailable."""
        begins, now = request.begins.timestamp(), self._observed.settings.clock.now()
        ends = begins + request.lasts_s
        if ends <= now:
            raise InvalidInput(
                f"This window would have ended at {closings.instant(ends)}, and it is "
                f"{closings.instant(now)} now. Use a later begin, or more hours.",
                field="begins",
            )
        window = NodeWindowRecord(begins, ends, _words(request.reason), caller.name)
        return await self._change(caller, name, lambda node: replace(node, window=window))

    async def _change(
        self, caller: Caller, name: str, change: Callable[[NodeRecord], NodeRecord]
    ) -> PoolNode:
        rights.require_admin(caller, "manage machines")
        self._require(name)
        await shielded(self._save(name, change))
        return self._view(name)

    async def _save(self, name: str, change: Callable[[NodeRecord], NodeRecord]) -> None:
        async with self._ledger.lock:
            known = self._observed.now.nodes
            nodes = self._current({**known, name: change(known.get(name, NodeRecord(name)))})
            await self._ledger.commit(SaveNodes(tuple(nodes.values())))
            self._put(nodes)
        self._changed.set()
        self._want_pass()

    def _require(self, name: str) -> None:
        names = sorted(self._observed.now.inventory.nodes)
        if name not in names:
            more = len(names) - NAMED
            listed = ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
            raise NotFound(
                f"The pool has no machine {name}; it has {listed or 'none'}.", code="no-node"
            )

    def _put(self, nodes: Mapping[str, NodeRecord]) -> None:
        """Publish the settings without expired windows, and request a pass if they have changed."""
        nodes = self._current(nodes)
        closed = closings.closed_now(nodes, self._observed.settings.clock.now())
        seen = self._observed.now
        if (nodes, closed) != (seen.nodes, seen.closed):
            self._observed.put(with_fields(seen, nodes=nodes, closed=closed))
            self._want_pass()

    def _current(self, nodes: Mapping[str, NodeRecord]) -> dict[str, NodeRecord]:
        now = self._observed.settings.clock.now()
        found = {
            name: replace(node, window=None) if node.window and node.window.ends <= now else node
            for name, node in nodes.items()
        }
        return {name: node for name, node in found.items() if node != NodeRecord(name)}


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _words(reason: str) -> str:
    """Return a reason as one line. Errors: InvalidInput if it is blank."""
    words = one_line(reason)
    if not words:
        raise InvalidInput("Give a short reason: users who wait for it read it.", field="reason")
    return words
