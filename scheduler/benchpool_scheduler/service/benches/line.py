"""The line of servers whose build GPUs cannot be had at once (R3): its places, what each is told.

The line is kept in memory. Who asks brings along since when, so that a scheduler that was restarted
gives everybody the same place again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from benchpool_scheduler import contract
from benchpool_scheduler.core.benches.line import BenchGpu, Offer, Seat, Use, ends_in, seats
from benchpool_scheduler.core.model import GpuId, JobId, NodeName
from benchpool_scheduler.phrases import count, is_are
from benchpool_scheduler.runtime import Device, DeviceState, NodeFacts
from benchpool_scheduler.service.benches import bench_reserve
from benchpool_scheduler.service.benches.node_selection import suits
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.latest_pass import LatestPass
from benchpool_scheduler.service.observed.site import Site
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.store.records import LeaseRecord

ABSENT_S = 30.0
"""Who has not asked for so long is passed over, and keeps the place."""

FORGOTTEN_S = 300.0
"""Who has not asked for so long has left; a Hub that restarts needs less."""

RETURN_S = 5.0
"""What R21 allows beside the grace period until lent GPUs are back."""

MOST_REMEMBERED = 200
"""So many ended leases are remembered for estimates."""

Server = tuple[str, str]
"""User and server."""


class LineReason(StrEnum):
    """Why a server waits in line for its build GPUs (R22)."""

    CALLED_BACK = "bench-called-back"
    """Jobs that use its GPUs were told to leave, and are saving."""
    BENCHES_FULL = "benches-full"
    """Other benches, or work that may not be paused, hold what it could get."""


@dataclass(frozen=True, slots=True)
class WaitingServer:
    """A server in line.

    Attributes:
        id: That of the lease it will get.
        since: When it first asked; decides its turn. ``asked``: when it last did.
    """

    id: str
    request: contract.LeaseRequest
    since: float
    asked: float

    @property
    def server(self) -> Server:
        """Whose place it is."""
        return self.request.user, self.request.server


@dataclass
class BenchLine:
    """Who waits, by the time of the first question.

    Args:
        nodes_for_claim: Tells where a volume claim can be used, None for everywhere.
    """

    ledger: Ledger
    site: Site
    latest_pass: LatestPass
    nodes_for_claim: Callable[[str], frozenset[str] | None]
    lasted_s: list[float] = field(default_factory=list)
    _places: dict[Server, WaitingServer] = field(default_factory=dict)

    # ------------------------------------------------------------------ who waits

    def enter(self, request: contract.LeaseRequest, since: float | None) -> WaitingServer:
        """Take a place, or keep the one that the server has."""
        now = self.site.clock.now()
        known = self._places.get((request.user, request.server))
        if known is not None:
            first = known.since if since is None else min(since, known.since)
            place = replace(known, request=request, since=first, asked=now)
        else:
            first = now if since is None else min(since, now)
            place = WaitingServer(self.site.new_id(), request, first, now)
        self._places[place.server] = place
        return place

    def leave(self, place: str) -> bool:
        """Give up the place with this id; tell whether there was one."""
        found = [server for server, waiting in self._places.items() if waiting.id == place]
        for server in found:
            del self._places[server]
        return bool(found)

    def present(self) -> Sequence[WaitingServer]:
        """Return who waits and still asks, the next one first; forget who has long gone."""
        now = self.site.clock.now()
        for server, waiting in list(self._places.items()):
            if now - waiting.asked > FORGOTTEN_S:
                del self._places[server]
        here = [it for it in self._places.values() if now - it.asked <= ABSENT_S]
        self.site.bench_line = len(here)
        return sorted(here, key=lambda it: (it.since, it.id))

    def keeps(self, place: str, request: contract.LeaseRequest) -> bool:
        """Tell whether the start that asks still has the place with this id.

        A later start of the same server takes its place over.
        """
        return any(
            waiting.id == place and waiting.request.spawn == request.spawn
            for waiting in self._places.values()
        )

    def has(self, request: contract.LeaseRequest) -> bool:
        """Tell whether a server is in line already."""
        return (request.user, request.server) in self._places

    # ------------------------------------------------------------------ what they get

    def seats(self) -> Mapping[str, Seat]:
        """Return where everybody in line gets GPUs, by id; and call back what they wait for."""
        line = self.present()
        if not line:
            self.site.called = {}
            return {}
        asked = ((it.id, it.request.gpus, self.offer(it.request)) for it in line)
        found = seats(asked, bench_reserve.kept(self.ledger, self.site))
        called: dict[str, int] = {}
        for waiting in line:
            seat = found.get(waiting.id)
            if seat is not None and not seat.ready and _asks_whole(waiting.request):
                called[seat.node] = called.get(seat.node, 0) + len(seat.gpus)
        self.site.called = called
        return found

    def offer(self, request: contract.LeaseRequest) -> Offer:
        """Return what a server could get, now or when others have left."""
        inventory = self.site.inventory
        reachable = None
        if request.claim is not None:
            where = f"{request.namespace}/" if request.namespace else ""
            reachable = self.nodes_for_claim(where + request.claim)
        found: dict[NodeName, list[BenchGpu]] = {}
        for name, devices in inventory.nodes.items():
            if name not in inventory.build or (reachable is not None and name not in reachable):
                continue
            if not suits(request, inventory.facts.get(name, NodeFacts(name))):
                continue
            gpus = [
                BenchGpu(GpuId(device.uuid), use, rank_of(request, device))
                for device in devices
                if accepts(request, device) and (use := self._use(device)) is not None
            ]
            if gpus:
                found[NodeName(name)] = gpus
        return found

    def _use(self, device: Device) -> Use | None:
        """Return what stands between a GPU and a bench; None when no bench can get it."""
        if device.state is not DeviceState.USABLE or device.uuid in self.ledger.leased:
            return None
        holder = self.ledger.counters.holders.get(device.uuid)
        if holder is None:
            return Use.FREE
        job = self.ledger.job(holder)
        if job is None:
            return None
        if job.wish is not None or self._is_left(job.id, job.attempt, device.uuid):
            return Use.LEAVING
        if not job.preemptible or device.resource != DEFAULT_RESOURCE:
            return None  # slices are neither kept for benches nor lent
        if JobId(job.id) in self.latest_pass.over_quota:
            return Use.OVER_QUOTA
        return Use.WITHIN_QUOTA if self.site.configuration.build.lend_idle else None

    def _is_left(self, job: str, number: int, gpu: str) -> bool:
        attempt = self.ledger.attempt(job, number)
        workers = () if attempt is None else attempt.live_workers
        return any(worker.leaving and gpu in worker.gpus for worker in workers)

    # ------------------------------------------------------------------ what they are told

    def ended(self, lease: LeaseRecord) -> None:
        """Learn from a lease that was given back how long leases last."""
        self.lasted_s.append(max(0.0, self.site.clock.now() - lease.since))
        del self.lasted_s[:-MOST_REMEMBERED]

    def place(self, waiting: WaitingServer, seated: Mapping[str, Seat]) -> contract.LinePlace:
        """Return what a server in line is told."""
        line = self.present()
        ids = [it.id for it in line]
        position = ids.index(waiting.id) + 1 if waiting.id in ids else len(ids)
        seat = seated.get(waiting.id)
        reason, wait_s = (
            self._full(waiting, position) if seat is None else self._called(waiting, seat)
        )
        now = self.site.clock.now()
        return contract.LinePlace(
            id=waiting.id,
            position=position,
            length=len(ids),
            since=moment(waiting.since),
            reason=reason,
            estimated_start=None
            if wait_s is None
            else contract.EstimatedStart(
                earliest=moment(now),
                likely=moment(now + wait_s),
                latest=moment(now + wait_s + RETURN_S) if seat is not None else None,
            ),
        )

    def _called(self, waiting: WaitingServer, seat: Seat) -> tuple[contract.Reason, float]:
        asked = waiting.request.gpus
        busy = sum(gpu.use is not Use.FREE for gpu in seat.gpus)
        grace_s = self.site.configuration.policy.grace_s
        reason = contract.Reason(
            LineReason.CALLED_BACK.value,
            f"{count(busy, 'GPU')} of the {asked} {is_are(busy)} still in use by jobs that were "
            f"told to save and leave, which takes at most {grace_s:g} s.",
            {"asked": asked, "busy": busy, "grace_s": grace_s},
            "Nothing to do: the server starts by itself when they have left.",
        )
        return reason, grace_s

    def _full(self, waiting: WaitingServer, position: int) -> tuple[contract.Reason, float | None]:
        request = waiting.request
        offer = self.offer(request)
        free = max((sum(g.use is Use.FREE for g in gpus) for gpus in offer.values()), default=0)
        ages, holding = self._held_by_benches(request)
        wait_s = ends_in(ages, self.lasted_s, min(position, len(ages)))
        models = f" of model {' or '.join(request.gpu_models)}" if request.gpu_models else ""
        reason = contract.Reason(
            LineReason.BENCHES_FULL.value,
            f"{count(request.gpus, 'GPU')}{models} {is_are(request.gpus)} not free: {free} on one "
            f"machine now, {count(holding, 'GPU')} held by {count(len(ages), 'other server')}.",
            {"asked": request.gpus, "free": free, "held": holding, "servers": len(ages)},
            "The server starts by itself when others have stopped; or start without a GPU "
            "meanwhile.",
        )
        return reason, wait_s

    def _held_by_benches(self, request: contract.LeaseRequest) -> tuple[list[float], int]:
        """Return the ages of the leases that hold what the server could get, and their GPUs."""
        by_uuid, now = self.site.inventory.by_uuid, self.site.clock.now()
        ages, gpus = [], 0
        for lease in self.ledger.leases():
            fitting = [g for g in lease.gpus if g in by_uuid and accepts(request, by_uuid[g])]
            if fitting:
                ages.append(max(0.0, now - lease.since))
                gpus += len(fitting)
        return ages, gpus


def accepts(request: contract.LeaseRequest, device: Device) -> bool:
    """Tell whether a server takes a GPU of this kind."""
    return device.resource == (request.resource or DEFAULT_RESOURCE) and (
        not request.gpu_models or device.model in request.gpu_models
    )


def _asks_whole(request: contract.LeaseRequest) -> bool:
    return request.resource in (None, DEFAULT_RESOURCE)


def rank_of(request: contract.LeaseRequest, device: Device) -> int:
    """Return the place of a GPU's model among those that a server accepts."""
    return request.gpu_models.index(device.model) if request.gpu_models else 0


DEFAULT_RESOURCE = Device("", 0, "", "", None, simulated=False).resource
"""What whole GPUs are counted as."""
