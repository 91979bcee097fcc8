"""Bench actions with the caller's permissions checked: reserve, queue, release, reclaim."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from benchpool_scheduler import contract
from benchpool_scheduler.errors import NotFound, Unavailable
from benchpool_scheduler.phrases import one_line
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.benches.bench_activity import last_active
from benchpool_scheduler.service.benches.reclaim_requests import ReclaimRequests
from benchpool_scheduler.service.benches.reservations import Leases
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.topic import Topic
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.service.process.shielded import shielded
from benchpool_scheduler.store.records import LeaseRecord


class Benches:
    """Actions of spawners and users on build GPUs.

    Args:
        denied: Returns the device files that a process with the given GPUs must not open.

    Attributes:
        asked: Reclaim requests of administrators for benches. ``changed``: publishes the lease
            IDs of new requests.
    """

    def __init__(
        self,
        ledger: Ledger,
        reservations: Leases,
        observed: SchedulerState,
        denied: Callable[[Sequence[str]], Sequence[tuple[int, int]]],
    ) -> None:
        self._ledger = ledger
        self._reservations = reservations
        self._observed = observed
        self._denied = denied
        self.asked = ReclaimRequests(observed.settings.state / "scheduler" / "asked-benches.json")
        self.changed: Topic[str] = Topic()

    async def reserve(self, caller: Caller, request: contract.LeaseRequest) -> contract.Lease:
        """Reserve build GPUs for a server; check and reservation are one step (R2).

        Errors: Forbidden for callers other than services and administrators, Refused
        ``build-quota``, Unavailable ``build-capacity``.
        """
        rights.require_admin(caller, "reserve GPUs for a server")
        return self._granted(await shielded(self._reservations.reserve(request)))

    async def wait_in_line(
        self, caller: Caller, request: contract.LineRequest
    ) -> contract.LineAnswer:
        """Reserve build GPUs for a server, or return its place in the bench queue (R2, R3).

        Errors: Forbidden for callers other than services and administrators, Refused
        ``build-quota``, TooMany ``line-full``.
        """
        rights.require_admin(caller, "reserve GPUs for a server")
        found = await self._reservations.reserve_or_wait(request)
        if isinstance(found, contract.LinePlace):
            return contract.LineAnswer(place=found)
        return contract.LineAnswer(lease=self._granted(found))

    def _granted(self, record: LeaseRecord) -> contract.Lease:
        """Return a lease as the spawner needs it to start the server."""
        denied = list(self._denied(record.gpus))
        return msgspec.structs.replace(lease_view(record), denied_devices=denied)

    async def release(self, caller: Caller, lease: str) -> None:
        """Release a lease. Repeating it does nothing. Errors: Forbidden."""
        rights.require_admin(caller, "release the GPUs of a server")
        await self._reservations.parking.forget(lease)
        await shielded(self._reservations.release(lease))

    async def ask_back(
        self, caller: Caller, lease: str, wanted: contract.BenchWanted
    ) -> contract.Lease:
        """Ask the owner of a bench to release it. Nothing is stopped.

        Errors: Forbidden for callers other than administrators, NotFound, Unavailable.
        """
        rights.require_admin(caller, "request a user's bench")
        held = self._ledger.lease(lease)
        if held is None:
            raise NotFound("This bench no longer exists: its GPUs were released.")
        at = moment(self._observed.settings.clock.now())
        asked = contract.ReclaimRequest(caller.name, at, one_line(wanted.reason))
        try:
            await self.asked.ask(lease, asked, {it.id for it in self._ledger.leases()})
        except OSError as error:
            raise Unavailable(
                f"The request cannot be saved ({error.strerror}). Try again."
            ) from error
        self.changed.publish(lease)
        return self._view(held)

    def _view(self, lease: LeaseRecord) -> contract.Lease:
        active = last_active(self._observed.settings.directory).get((lease.user, lease.server))
        return lease_view(lease, active, self.asked.all().get(lease.id))

    def leases(self, caller: Caller, user: str | None = None) -> list[contract.Lease]:
        """Return the leases that the caller may see, of one user or of all users."""
        active = last_active(self._observed.settings.directory)
        return [
            lease_view(
                lease, active.get((lease.user, lease.server)), self.asked.all().get(lease.id)
            )
            for lease in self._ledger.leases()
            if rights.may_use_lease(caller, lease) and user in (None, lease.user)
        ]

    def line(self, caller: Caller) -> list[contract.InLine]:
        """Return the servers in the bench queue that the caller may see, the next one first."""
        waiting = self._reservations.line()
        return [it for it in waiting if rights.may_see_bench(caller, it.user)]


def lease_view(
    record: LeaseRecord,
    active: float | None = None,
    asked: contract.ReclaimRequest | None = None,
) -> contract.Lease:
    """Return a lease in the form of the API."""
    return contract.Lease(
        id=record.id,
        user=record.user,
        server=record.server,
        spawn=record.spawn,
        gpus=list(record.gpus),
        since=moment(record.since),
        last_active=None if active is None else moment(active),
        reclaim_request=asked,
    )
