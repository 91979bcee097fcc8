"""Build GPUs held by notebook servers: reservation in one step and all kinds of release (R1-R3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from benchpool_scheduler import contract, phrases
from benchpool_scheduler.core.benches.line import Seat, seat
from benchpool_scheduler.errors import BenchpoolError, Refused, TooMany, Unavailable
from benchpool_scheduler.runtime import NodeFacts
from benchpool_scheduler.service.benches import bench_reserve
from benchpool_scheduler.service.benches.line import BenchLine, Place
from benchpool_scheduler.service.benches.machine_limits import check_gpus
from benchpool_scheduler.service.benches.node_selection import suits, why_none
from benchpool_scheduler.service.benches.parking import BenchParking
from benchpool_scheduler.service.benches.present_names import PresentNames
from benchpool_scheduler.service.benches.rebuilding import LostBenches
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.shielded import shielded
from benchpool_scheduler.store.records import DropLease, LeaseRecord, SaveLease

GONE_S = 60.0
"""Time without the server in the Hub's list after which its lease is released, in seconds."""

MOST_IN_LINE = 1000


class Leases:
    """Leases of build GPUs: reserve, queue, release, reconcile.

    Args:
        nodes_for_claim: Returns the nodes where a volume claim can be used, or None for all nodes.
        want_pass: Called when training has more or fewer GPUs.

    Attributes:
        shortage: Set when a bench within its quota found no free GPU. ``parking``: parked benches.
        given_up: Returns ended leases whose server keeps running.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        nodes_for_claim: Callable[[str], frozenset[str] | None],
        want_pass: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._want_pass = want_pass
        self._line = BenchLine(ledger, observed, nodes_for_claim)
        self.parking = BenchParking(ledger, observed, self.release, want_pass)
        self.given_up: Callable[[], Collection[str]] = tuple
        self._lost = LostBenches(ledger, observed, lambda: self.given_up())
        self._names = PresentNames(ledger, observed, self.parking, want_pass)
        self._missing_since: dict[str, float] = {}
        self._changed = asyncio.Event()
        self.shortage = asyncio.Event()

    async def reserve(self, request: contract.LeaseRequest) -> LeaseRecord:
        """Reserve GPUs for one start of a server. A repeat returns the same lease.

        Errors: Refused ``build-quota``, ``build-nodes``, ``no-such-model`` or ``larger-than-node``,
        Unavailable ``build-capacity`` or if the store fails.
        """
        await self._names.meet(request.user)
        async with self._ledger.lock:
            if (held := self._held_for(request)) is not None:
                return held
            self._observed.now.safe_mode.require_open()
            self._check_quota(request)
            self._check_nodes(request)
            check_gpus(request, self._observed.now.inventory)
            taken = [gpu.gpu for it in self._line.seats().values() for gpu in it.gpus]
            offer = self._line.offer(request)
            found = seat(request.gpus, offer, taken)
            if found is None or not found.ready:
                self.shortage.set()
                raise self._nothing_free(request, taken, called=found is not None)
            lease = await self._grant(self._observed.settings.new_id(), request, found)
        self._want_pass()
        return lease

    async def reserve_or_wait(
        self, asked: contract.LineRequest
    ) -> LeaseRecord | contract.LinePlace:
        """Reserve GPUs for one start of a server, or return its place in the queue.

        The response is delayed by up to ``hold_s`` while nothing changes. Errors: as ``reserve``,
        but TooMany ``line-full`` in place of ``build-capacity``.
        """
        await self._names.meet(asked.lease.user)
        loop = asyncio.get_running_loop()
        until = loop.time() + asked.hold_s
        changed, found = self._changed, await shielded(self._hold_or_wait(asked))
        while isinstance(found, contract.LinePlace) and (left := until - loop.time()) > 0:
            try:
                async with asyncio.timeout(left):
                    await changed.wait()
            except TimeoutError:
                break
            kept = self._line.keeps(found.id, asked.lease)
            if not kept and self._held_for(asked.lease) is None:
                break  # it has left the queue meanwhile, and this request must not enter it again
            before, changed = found, self._changed
            found = await shielded(self._hold_or_wait(asked))
            if not isinstance(found, contract.LinePlace) or _differ(before, found):
                break
        return found

    async def _hold_or_wait(self, asked: contract.LineRequest) -> LeaseRecord | contract.LinePlace:
        request = asked.lease
        async with self._ledger.lock:
            if (held := self._held_for(request)) is not None:
                return held
            self._observed.now.safe_mode.require_open()
            self._check_quota(request)
            self._check_nodes(request)
            check_gpus(request, self._observed.now.inventory)
            since = None if asked.since is None else asked.since.timestamp()
            if not self._line.has(request) and len(self._line.present()) >= MOST_IN_LINE:
                raise _line_full()
            waiting = self._line.enter(request, since)
            seated = self._line.seats()
            its = seated.get(waiting.id)
            found: LeaseRecord | contract.LinePlace
            if its is not None and its.ready:
                found = await self._grant(waiting.id, request, its)
                self._line.leave(waiting.id)
            else:
                if its is None:
                    self.shortage.set()
                found = self._line.place(waiting, seated)
            self.renew_calls()
        self._want_pass()
        return found

    def line(self) -> list[contract.InLine]:
        """Return the queued servers with their places, the next one first."""
        seated = self._line.seats()
        return [
            contract.InLine(
                user=it.request.user,
                server=it.request.server,
                gpus=it.request.gpus,
                gpu_models=list(it.request.gpu_models),
                place=self._line.place(it, seated),
            )
            for it in self._line.present()
        ]

    def waiting(self) -> int:
        """Return the number of servers in the queue."""
        return len(self._line.present())

    def renew_calls(self) -> bool:
        """Publish how many GPUs the queue reclaims. Return whether that has changed (R3)."""
        calls, seen = self._line.calls(), self._observed.now
        if calls == seen.called:
            return False
        self._observed.put(replace(seen, called=calls))
        return True

    async def serve(self) -> None:
        """Give free GPUs to queued servers. The caller holds the ledger's lock."""
        if self._observed.now.safe_mode.hold is not None:
            return
        await self.parking.take_back()
        served = False
        while (found := self._first_ready()) is not None:
            waiting, its = found
            self._line.leave(waiting.id)
            try:
                self._check_quota(waiting.request)
            except BenchpoolError:
                continue  # its quota was lowered: its next request is refused
            await self._grant(waiting.id, waiting.request, its)
            served = True
        self.renew_calls()
        if served:
            self._notify_waiting()

    def _first_ready(self) -> tuple[Place, Seat] | None:
        seated = self._line.seats()
        for waiting in self._line.present():
            its = seated.get(waiting.id)
            if its is not None and its.ready:
                return waiting, its
        return None

    async def _grant(self, id_: str, request: contract.LeaseRequest, its: Seat) -> LeaseRecord:
        lease = LeaseRecord(
            id=id_,
            user=request.user,
            server=request.server,
            spawn=request.spawn,
            gpus=tuple(str(gpu.gpu) for gpu in its.gpus),
            since=self._observed.settings.clock.now(),
        )
        await self._ledger.commit(SaveLease(lease))
        return lease

    async def release(self, lease_id: str) -> None:
        """Release a lease or leave the queue. Repeating it does nothing."""
        async with self._ledger.lock:
            lease = self._ledger.lease(lease_id)
            if not self._line.leave(lease_id) and lease is None:
                return
            if lease is not None:
                await self._ledger.commit(DropLease(lease_id))
                self._line.ended(lease)
            self.renew_calls()
        self._notify_waiting()
        self._want_pass()

    def _notify_waiting(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def reconcile(self) -> None:
        """Release the leases of servers that the Hub has not named for ``GONE_S``.

        Leases that the Hub has and the ledger lost are written again. Errors: Unavailable if the
        store fails.
        """
        servers = self._observed.settings.directory.servers()
        if servers is None:
            return
        self._names.follow()
        if await self._lost.rebuild():
            self._want_pass()
        if self._observed.now.safe_mode.hub is not None:
            return  # a server that the Hub does not name may still run
        now = self._observed.settings.clock.now()
        present = {(server.user, server.name) for server in servers}
        missing = [x for x in self._ledger.leases() if (x.user, x.server) not in present]
        self._missing_since = {x.id: self._missing_since.get(x.id, now) for x in missing}
        for lease in missing:
            if now - self._missing_since[lease.id] > GONE_S:
                await self.release(lease.id)

    async def is_used(self, lease_id: str) -> bool:
        """Ask the Hub again. Return whether the server of a lease exists or may exist."""
        if self._ledger.lease(lease_id) is None:
            return False
        try:
            await self._observed.ask_hub()
        except BenchpoolError:
            return True  # unknown: the GPUs of a running server must not be allocated elsewhere
        self._names.follow()
        lease = self._ledger.lease(lease_id)
        if lease is None:
            return False
        servers, at = self._observed.settings.directory.servers(), (lease.user, lease.server)
        return servers is None or any((x.user, x.name) == at for x in servers)

    # ------------------------------------------------------------------ checks

    def _check_quota(self, request: contract.LeaseRequest) -> None:
        groups = request.groups or self._known_groups(request.user)
        quota, rule = bench_reserve.quota_of(self._observed.now, request.user, groups)
        held = [lease for lease in self._ledger.leases() if lease.user == request.user]
        count = sum(len(lease.gpus) for lease in held)
        lent = bench_reserve.lent_by(self._observed.now, request.user, {lease.id for lease in held})
        if count + lent + request.gpus <= quota:
            return
        if count + request.gpus <= quota:
            raise Refused(
                f"{phrases.count(request.gpus, 'GPU')} for this server would be more than the "
                f"build quota of {request.user}: {quota} ({rule}), {count} held and {lent} lent by "
                "parked benches, which return. Stop a parked server, or request fewer GPUs.",
                code="build-quota",
                field="gpus",
                numbers={"asked": request.gpus, "quota": quota, "held": count, "lent": lent},
            )
        raise Refused(
            f"{phrases.count(request.gpus, 'GPU')} for this server would be more than the build "
            f"quota of {request.user}: {quota} ({rule}), {_holders(held, count)}. "
            f"{_advice(quota, count)}",
            code="build-quota",
            field="gpus",
            numbers={"asked": request.gpus, "quota": quota, "held": count, "rule": rule},
        )

    def _check_nodes(self, request: contract.LeaseRequest) -> None:
        """Refuse a server that no node can take, whatever is in use. Errors: Refused."""
        inventory = self._observed.now.inventory
        nodes = [inventory.facts.get(name, NodeFacts(name)) for name in sorted(inventory.build)]
        if not nodes or any(suits(request, node) for node in nodes):
            return
        number = "The one machine" if len(nodes) == 1 else f"None of the {len(nodes)} machines"
        verb = "cannot take" if len(nodes) == 1 else "can take"
        raise Refused(
            f"{number} with GPUs for benches {verb} this server: {why_none(request, nodes)}. "
            "Choose another profile, or ask an administrator to correct this one.",
            code="build-nodes",
            numbers={"machines": len(nodes)},
        )

    def _known_groups(self, user: str) -> Mapping[str, int | None]:
        known = self._observed.now.hub_user(user)
        return {} if known is None else known.groups

    def _held_for(self, request: contract.LeaseRequest) -> LeaseRecord | None:
        held = (lease for lease in self._ledger.leases() if _is_for(lease, request))
        return next(held, None)

    def _nothing_free(
        self, request: contract.LeaseRequest, taken: Sequence[str], *, called: bool
    ) -> Unavailable:
        """Return the error for a request without free GPUs.

        Args:
            taken: GPUs that servers in the queue get next. ``called``: jobs release GPUs for this
                server within the grace period.
        """
        offer = self._line.offer(request)
        free = [
            sum(not gpu.use and gpu.gpu not in taken for gpu in gpus) for gpus in offer.values()
        ]
        most = max(free, default=0)
        models = " or ".join(request.gpu_models)
        grace = phrases.exactly(self._observed.now.configuration.policy.grace_s)
        fewer = f"start with at most {phrases.count(most, 'GPU')}" if most else "start without one"
        then = (
            f"Jobs release them within {grace}. Try again then, or {fewer}."
            if called
            else f"Try again when {self._line.waits_for(request)}, or {fewer}."
        )
        return Unavailable(
            f"{phrases.count(request.gpus, 'GPU')} {'of model ' + models + ' ' if models else ''}"
            f"for this server {phrases.is_are(request.gpus)} not free: {most} on one machine now. "
            f"{then}",
            code="build-capacity",
            numbers={"asked": request.gpus, "free": most},
        )


def _differ(before: contract.LinePlace, now: contract.LinePlace) -> bool:
    return (before.position, before.reason.code) != (now.position, now.reason.code)


def _is_for(lease: LeaseRecord, request: contract.LeaseRequest) -> bool:
    asked = (request.user, request.server, request.spawn)
    return (lease.user, lease.server, lease.spawn) == asked


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
        return f"Start with at most {phrases.count(free, 'GPU')}, or stop one of the servers."
    if held:
        return "Stop one of these servers, or start without a GPU."
    return "Start without a GPU, or ask an administrator for a build quota."


def _line_full() -> TooMany:
    return TooMany(
        f"The queue is full: {MOST_IN_LINE} servers already wait for GPUs. Start without a GPU, "
        "or try again later.",
        code="line-full",
        numbers={"limit": MOST_IN_LINE},
    )
