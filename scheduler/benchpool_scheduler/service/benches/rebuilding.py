"""Recovery of lost bench records from the Hub's data about their servers.

A database that was lost, damaged or restored from a backup may not contain a bench whose server
runs. The spawner keeps the lease in the Hub's own database, so its GPUs are found again before they
are allocated elsewhere (R1).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from benchpool_scheduler.hub import HubServer
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store import Conflict
from benchpool_scheduler.store.records import Change, DropLease, LeaseRecord, SaveLease

log = logging.getLogger(__name__)

MOST_RETURNED = 10_000
"""Maximum number of released leases to remember, since the Hub may still name them for a moment."""

_PROBLEM = "lost-benches"


class LostBenches:
    """Finds benches that are in the Hub and missing in the database.

    Args:
        given_up: Returns ended leases whose server keeps running: they are not lost.
    """

    def __init__(
        self, ledger: Ledger, observed: SchedulerState, given_up: Callable[[], Collection[str]]
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._given_up = given_up
        self._returned: dict[str, None] = {}
        ledger.lease_returned.subscribe(self._note_return)

    def _note_return(self, lease: LeaseRecord) -> None:
        self._returned[lease.id] = None
        if len(self._returned) > MOST_RETURNED:
            del self._returned[next(iter(self._returned))]

    async def rebuild(self) -> bool:
        """Write the missing leases. Return whether any was written. Errors: Unavailable."""
        servers = self._observed.settings.directory.servers() or ()
        lost = [lease for lease in map(self._lost, servers) if lease is not None]
        taken: list[str] = []
        for lease in lost:
            try:
                await self._write(lease)
            except Conflict:
                taken.append(_taken_text(lease))
            else:
                log.warning("the lost record of the bench %s was rebuilt", lease)
        self._observed.report(_PROBLEM, " ".join(taken) or None)
        return len(lost) > len(taken)

    def _lost(self, server: HubServer) -> LeaseRecord | None:
        """Return the lease of a running server if it is not on record, else None."""
        kept = server.held
        if kept is None or not server.ready or not kept.gpus or kept.lease in self._returned:
            return None
        if kept.lease in {it.lease for it in self._observed.now.parked.values()}:
            return None
        since = server.started or self._observed.settings.clock.now()
        lease = LeaseRecord(kept.lease, server.user, server.name, kept.spawn, kept.gpus, since)
        if self._ledger.lease(lease.id) is not None or lease.id in self._given_up():
            return None
        newer = (it for it in self._of_server(lease) if it.since >= since)
        return lease if next(newer, None) is None else None

    def _of_server(self, lease: LeaseRecord) -> list[LeaseRecord]:
        at = (lease.user, lease.server)
        return [it for it in self._ledger.leases() if (it.user, it.server) == at]

    async def _write(self, lease: LeaseRecord) -> None:
        """Write a lease in place of its unreadable record, or of the record of an earlier start."""
        async with self._ledger.lock:
            unreadable = self._ledger.unreadable
            kept = tuple(it for it in unreadable if (it.kind, it.id) != ("lease", lease.id))
            gone = [it.id for it in self._of_server(lease)]
            gone += [] if kept == unreadable else [lease.id]
            changes: list[Change] = [DropLease(it) for it in gone]
            await self._ledger.commit(*changes, SaveLease(lease))
            self._ledger.unreadable = kept


def _taken_text(lease: LeaseRecord) -> str:
    server = f"server {lease.server} of {lease.user}" if lease.server else f"server of {lease.user}"
    return (
        f"The record of a bench was lost, and its GPUs were assigned again meanwhile: the "
        f"{server} runs on {', '.join(lease.gpus)}. Stop that server, or the other holder."
    )
