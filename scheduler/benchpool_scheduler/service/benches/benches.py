"""The verbs of benches, with the caller's rights checked: reserve, wait in line, give back."""

from __future__ import annotations

from benchpool_scheduler import contract
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.benches.reservations import Leases
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.service.process.shielded import shielded
from benchpool_scheduler.store.records import LeaseRecord


class Benches:
    """What spawners and people may do with build GPUs."""

    def __init__(self, ledger: Ledger, reservations: Leases) -> None:
        self._ledger = ledger
        self._reservations = reservations

    async def reserve(self, caller: Caller, request: contract.LeaseRequest) -> contract.Lease:
        """Hold build GPUs for a server: check and reservation are one step (R2).

        Errors: Forbidden for others than services and administrators, Refused ``build-quota``,
        Unavailable ``build-capacity``.
        """
        rights.require_admin(caller, "reserve GPUs for a server")
        return lease_view(await shielded(self._reservations.reserve(request)))

    async def wait_in_line(
        self, caller: Caller, request: contract.LineRequest
    ) -> contract.LineAnswer:
        """Hold build GPUs for a server, or say where it stands in line for them (R2, R3).

        Errors: Forbidden for others than services and administrators, Refused ``build-quota``,
        TooMany ``line-full``.
        """
        rights.require_admin(caller, "reserve GPUs for a server")
        found = await self._reservations.reserve_or_wait(request)
        if isinstance(found, contract.LinePlace):
            return contract.LineAnswer(place=found)
        return contract.LineAnswer(lease=lease_view(found))

    async def release(self, caller: Caller, lease: str) -> None:
        """Give a lease back. Repeating it does nothing. Errors: Forbidden."""
        rights.require_admin(caller, "give back the GPUs of a server")
        await shielded(self._reservations.release(lease))

    def leases(self, caller: Caller, user: str | None = None) -> list[contract.Lease]:
        """Return the leases that the caller may see, of one user or of all."""
        return [
            lease_view(lease)
            for lease in self._ledger.leases()
            if rights.may_use_lease(caller, lease) and user in (None, lease.user)
        ]

    def line(self, caller: Caller) -> list[contract.InLine]:
        """Return the servers in line for a bench that the caller may see, the next one first."""
        waiting = self._reservations.line()
        return [it for it in waiting if rights.may_see_bench(caller, it.user)]


def lease_view(record: LeaseRecord) -> contract.Lease:
    """Return a lease as callers see it."""
    return contract.Lease(
        id=record.id,
        user=record.user,
        server=record.server,
        spawn=record.spawn,
        gpus=list(record.gpus),
        since=moment(record.since),
    )
