"""Build GPUs held by notebook servers: reserved in one step, given back in every way (R1-R3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

from benchpool_scheduler import contract
from benchpool_scheduler.errors import Refused, Unavailable
from benchpool_scheduler.runtime import Device, DeviceState
from benchpool_scheduler.service import benches
from benchpool_scheduler.service.ledger import Ledger
from benchpool_scheduler.service.site import Site
from benchpool_scheduler.store.records import DropLease, LeaseRecord, SaveLease

GONE_S = 60.0
"""A lease whose server the Hub has not named for so long is given back."""


class Leases:
    """Reserve, release, reconcile.

    Args:
        want_pass: Called when train has more or fewer GPUs.

    Attributes:
        shortage: Set when a bench within its quota found no free GPU.
    """

    def __init__(self, ledger: Ledger, site: Site, want_pass: Callable[[], None]) -> None:
        self._ledger = ledger
        self._site = site
        self._want_pass = want_pass
        self._missing_since: dict[str, float] = {}
        self.shortage = asyncio.Event()

    async def reserve(self, request: contract.LeaseRequest) -> LeaseRecord:
        """Hold GPUs for one start of a server; a repeat answers the same lease.

        Errors: Refused ``build-quota``, Unavailable ``build-capacity`` or of the store.
        """
        async with self._ledger.turn:
            for lease in self._ledger.leases():
                if _is_for(lease, request):
                    return lease
            self._check_quota(request)
            lease = LeaseRecord(
                id=self._site.new_id(),
                user=request.user,
                server=request.server,
                spawn=request.spawn,
                gpus=self._choose(request),
                since=self._site.clock.now(),
            )
            await self._ledger.commit(SaveLease(lease))
        self._want_pass()
        return lease

    async def release(self, lease_id: str) -> None:
        """Give a lease back; one that is not there is given back already."""
        async with self._ledger.turn:
            if self._ledger.lease(lease_id) is None:
                return
            await self._ledger.commit(DropLease(lease_id))
        self._want_pass()

    async def reconcile(self) -> None:
        """Give back the leases of servers that the Hub has not named for a minute."""
        servers = self._site.directory.servers()
        if servers is None:
            return
        now = self._site.clock.now()
        present = {(server.user, server.name) for server in servers}
        missing = [x for x in self._ledger.leases() if (x.user, x.server) not in present]
        self._missing_since = {x.id: self._missing_since.get(x.id, now) for x in missing}
        for lease in missing:
            if now - self._missing_since[lease.id] > GONE_S:
                await self.release(lease.id)

    # ------------------------------------------------------------------ checks

    def _check_quota(self, request: contract.LeaseRequest) -> None:
        groups = request.groups or self._known_groups(request.user)
        quota, rule = benches.quota_of(self._site, request.user, groups)
        held = [lease for lease in self._ledger.leases() if lease.user == request.user]
        count = sum(len(lease.gpus) for lease in held)
        if count + request.gpus <= quota:
            return
        raise Refused(
            f"{_gpus(request.gpus)} for this server would be more than the build quota of "
            f"{request.user}: {quota} ({rule}), {_holders(held, count)}. {_advice(quota, count)}",
            code="build-quota",
            field="gpus",
            numbers={"asked": request.gpus, "quota": quota, "held": count, "rule": rule},
        )

    def _known_groups(self, user: str) -> Mapping[str, int | None]:
        known = self._site.hub_user(user)
        return {} if known is None else known.groups

    def _choose(self, request: contract.LeaseRequest) -> tuple[str, ...]:
        """Choose free GPUs of one node, acceptable models first. Errors: Unavailable."""
        best: list[Device] = []
        for devices in self._free():
            fitting = [d for d in devices if _accepts(request, d)]
            fitting.sort(key=lambda d: (_rank(request, d), d.index))
            if len(fitting) >= request.gpus:
                return tuple(device.uuid for device in fitting[: request.gpus])
            best = max(best, fitting, key=len)
        self.shortage.set()
        models = " or ".join(request.gpu_models)
        raise Unavailable(
            f"{_gpus(request.gpus)} {'of model ' + models + ' ' if models else ''}for this server "
            f"are not free: {len(best)} on one machine now. Jobs give back what is kept for "
            f"benches within {self._site.configuration.policy.grace_s:g} s; try again then, or "
            "start with fewer GPUs.",
            code="build-capacity",
            numbers={"asked": request.gpus, "free": len(best)},
        )

    def _free(self) -> Iterator[list[Device]]:
        """Yield the GPUs that are free for benches, node by node."""
        leased, holders = self._ledger.leased, self._ledger.census.holders
        inventory = self._site.inventory
        for node, devices in inventory.nodes.items():
            if node in inventory.build:
                yield [
                    d
                    for d in devices
                    if d.state is DeviceState.USABLE
                    and d.uuid not in leased
                    and d.uuid not in holders
                ]


def _is_for(lease: LeaseRecord, request: contract.LeaseRequest) -> bool:
    asked = (request.user, request.server, request.spawn)
    return (lease.user, lease.server, lease.spawn) == asked


def _accepts(request: contract.LeaseRequest, device: Device) -> bool:
    return not request.gpu_models or device.model in request.gpu_models


def _rank(request: contract.LeaseRequest, device: Device) -> int:
    return request.gpu_models.index(device.model) if request.gpu_models else 0


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


def _holders(held: list[LeaseRecord], count: int) -> str:
    if not held:
        return "none of it held"
    names = ", ".join(
        f"{len(lease.gpus)} by {repr(lease.server) if lease.server else 'the default server'}"
        for lease in held
    )
    return f"{count} held ({names})"


def _advice(quota: int, held: int) -> str:
    free = max(0, quota - held)
    if free:
        return f"Start with at most {_gpus(free)}, or stop one of the servers."
    if held:
        return "Stop one of these servers, or start without a GPU."
    return "Start without a GPU, or ask an administrator for a build quota."
