"""Benches under the current Hub names of their users.

The Hub may rename a user whose server runs. The server keeps its GPUs, which count against the
quota of the current name. The store keeps the name of the start: the Hub is asked again after each
start of the service, and the object of a lease in a cluster never changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.hub import HubServer
from benchpool_scheduler.service.benches.parking import BenchParking
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.records import LeaseRecord

log = logging.getLogger(__name__)


def present_names(
    leases: Iterable[LeaseRecord], servers: Iterable[HubServer], renamed: Mapping[str, str]
) -> list[LeaseRecord]:
    """Return the leases whose user was renamed, under the current name.

    Args:
        servers: Servers of the Hub. A server that names its lease determines the name.
        renamed: Current names of users, by former name, for servers that name no lease.
    """
    servers = list(servers)
    owners = {it.held.lease: it.user for it in servers if it.held is not None and it.held.gpus}
    there = {(it.user, it.name) for it in servers}
    found = []
    for lease in leases:
        user = owners.get(lease.id, renamed.get(lease.user, lease.user))
        if user != lease.user and (user, lease.server) in there:
            found.append(replace(lease, user=user))
    return found


class PresentNames:
    """Tracks renamed users who hold benches.

    Args:
        want_pass: Called when the Hub has reported other users.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        parking: BenchParking,
        want_pass: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._parking = parking
        self._want_pass = want_pass
        self._asking = asyncio.Lock()

    def follow(self) -> None:
        """Record every bench under the name that the Hub reported last."""
        servers = self._observed.settings.directory.servers() or ()
        held = {it.id: it for it in (*self._parking.leases(), *self._ledger.leases())}
        for lease in present_names(held.values(), servers, self._observed.left_users.renamed):
            log.warning("the Hub renamed %s to %s, who holds the bench %s from now on",
                        held[lease.id].user, lease.user, lease.id)  # fmt: skip
            if self._ledger.lease(lease.id) is not None:
                self._ledger.know_lease(lease)
            self._parking.know_lease(lease)

    async def meet(self, user: str) -> None:
        """Ask the Hub about a user that it has not named yet, who may already hold a bench."""
        async with self._asking:
            if any(it.name == user for it in self._observed.settings.directory.users()):
                return
            before = self._observed.now.users
            with contextlib.suppress(BenchpoolError):
                await self._observed.ask_hub()
                self.follow()
            if self._observed.now.users is not before:
                self._want_pass()
