"""Queue of servers that wait for build GPUs (R3): positions, reasons and estimates.

The queue is kept in memory. Each request carries the time since which its server waits, so the
positions survive a restart of the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchpool_scheduler import contract
from benchpool_scheduler.core.benches.bench_queue import BenchQueue, WaitingServer
from benchpool_scheduler.core.benches.line import (
    BenchGpu,
    LeaseEnds,
    Offer,
    Seat,
    Use,
    called,
    ends_in,
    seats,
)
from benchpool_scheduler.core.model import GpuId, JobId, NodeName
from benchpool_scheduler.phrases import count
from benchpool_scheduler.runtime import Device, DeviceState, NodeFacts
from benchpool_scheduler.service.benches import bench_reserve, line_words
from benchpool_scheduler.service.benches.node_selection import suits
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed import closings
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.store.records import LeaseRecord

RETURN_S = 5.0
"""Allowance of R21, beside the grace period, for the return of lent GPUs, in seconds."""

MOST_REMEMBERED = 200
"""Maximum number of ended leases that estimates use."""


Place = WaitingServer[contract.LeaseRequest]


class BenchLine:
    """Queue of servers for build GPUs, ordered by their first request.

    Args:
        nodes_for_claim: Returns the nodes where a volume claim can be used, or None for all nodes.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        nodes_for_claim: Callable[[str], frozenset[str] | None],
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._nodes_for_claim = nodes_for_claim
        self._lasted_s: list[float] = []
        self._queue: BenchQueue[contract.LeaseRequest] = BenchQueue()

    # ------------------------------------------------------------------ queue

    def enter(self, request: contract.LeaseRequest, since: float | None) -> Place:
        """Take a place in the queue, or keep the server's existing place."""
        settings, server = self._observed.settings, (request.user, request.server)
        now = settings.clock.now()
        queue = self._queue.entered(server, request, id=settings.new_id(), since=since, now=now)
        self._queue = queue.without_forgotten(now)
        return self._queue.places[server]

    def leave(self, place: str) -> bool:
        """Remove the place with this ID from the queue. Return whether it existed."""
        before, self._queue = self._queue, self._queue.without(place)
        return len(self._queue.places) < len(before.places)

    def present(self) -> Sequence[Place]:
        """Return the waiting servers that still poll, the next one first."""
        return self._queue.present(self._observed.settings.clock.now())

    def keeps(self, place: str, request: contract.LeaseRequest) -> bool:
        """Return whether the requesting start still has the place with this ID.

        A later start of the same server takes over its place.
        """
        return any(
            waiting.id == place and waiting.request.spawn == request.spawn
            for waiting in self._queue.places.values()
        )

    def has(self, request: contract.LeaseRequest) -> bool:
        """Return whether a server is already in the queue."""
        return (request.user, request.server) in self._queue.places

    # ------------------------------------------------------------------ seats

    def seats(self) -> Mapping[str, Seat]:
        """Return the GPUs that each queued server gets next, by place ID."""
        asked = ((it.id, it.request.gpus, self.offer(it.request)) for it in self.present())
        return seats(asked, bench_reserve.kept(self._ledger, self._observed.now))

    def calls(self) -> Mapping[str, int]:
        """Return how many whole GPUs of each node the queue reclaims from jobs (R3)."""
        whole = {it.id for it in self.present() if _asks_whole(it.request)}
        if not whole:
            return {}
        wanted = called(seat for place, seat in self.seats().items() if place in whole)
        return {str(node): gpus for node, gpus in wanted.items()}

    def offer(self, request: contract.LeaseRequest) -> Offer:
        """Return the GPUs that a server could get, now or after jobs have left them."""
        inventory = self._observed.now.inventory
        reachable = None
        if request.claim is not None:
            where = f"{request.namespace}/" if request.namespace else ""
            reachable = self._nodes_for_claim(where + request.claim)
        found: dict[NodeName, list[BenchGpu]] = {}
        for name, devices in inventory.nodes.items():
            if name not in inventory.build or (reachable is not None and name not in reachable):
                continue
            if name in self._observed.now.closed:
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
        """Return what a GPU is used for now, or None if no bench can get it."""
        if device.state is not DeviceState.USABLE or device.uuid in self._ledger.leased:
            return None
        if device.uuid in self._observed.now.parked:
            return None  # a parked kernel can return to no other GPU
        holder = self._ledger.counters.holders.get(device.uuid)
        if holder is None:
            return Use.FREE
        job = self._ledger.job(holder)
        if job is None:
            return None
        if job.stop_request is not None or self._is_left(job.id, job.attempt, device.uuid):
            return Use.LEAVING
        if not job.spec.preemptible or device.resource != DEFAULT_RESOURCE:
            return None  # slices are neither reserved for benches nor lent
        if JobId(job.id) in self._observed.now.latest_pass.over_quota:
            return Use.OVER_QUOTA
        return Use.WITHIN_QUOTA if self._observed.now.configuration.build.lend_idle else None

    def _is_left(self, job: str, number: int, gpu: str) -> bool:
        attempt = self._ledger.attempt(job, number)
        workers = () if attempt is None else attempt.live_workers
        return any(worker.leaving and gpu in worker.gpus for worker in workers)

    # ------------------------------------------------------------------ reasons and estimates

    def ended(self, lease: LeaseRecord) -> None:
        """Record the duration of a released lease, for estimates."""
        self._lasted_s.append(max(0.0, self._observed.settings.clock.now() - lease.since))
        del self._lasted_s[:-MOST_REMEMBERED]

    def place(self, waiting: Place, seated: Mapping[str, Seat]) -> contract.LinePlace:
        """Return position, reason and estimated start of a queued server."""
        line = self.present()
        ids = [it.id for it in line]
        position = ids.index(waiting.id) + 1 if waiting.id in ids else len(ids)
        seat = seated.get(waiting.id)
        reason, start = (
            self._full(waiting, position) if seat is None else self._called(waiting, seat)
        )
        return contract.LinePlace(
            id=waiting.id,
            position=position,
            length=len(ids),
            since=moment(waiting.since),
            reason=reason,
            estimated_start=start,
        )

    def _range(self, ends: LeaseEnds | None, basis: str) -> contract.EstimatedStart | None:
        if ends is None:
            return None
        now = self._observed.settings.clock.now()
        likely, latest = ends.likely_s, ends.latest_s
        return contract.EstimatedStart(
            earliest=moment(now + ends.earliest_s),
            likely=None if likely is None else moment(now + likely),
            latest=None if latest is None else moment(now + latest + RETURN_S),
            basis=basis,
        )

    def _called(
        self, waiting: Place, seat: Seat
    ) -> tuple[contract.Reason, contract.EstimatedStart | None]:
        asked = waiting.request.gpus
        busy = sum(gpu.use is not Use.FREE for gpu in seat.gpus)
        grace_s = self._observed.now.configuration.policy.grace_s
        reason = line_words.called_back(asked, busy, grace_s)
        ends = LeaseEnds(0.0, grace_s, grace_s)
        return reason, self._range(ends, "by the time that jobs have to save")

    def _full(
        self, waiting: Place, position: int
    ) -> tuple[contract.Reason, contract.EstimatedStart | None]:
        request = waiting.request
        offer = self.offer(request)
        free = max((sum(g.use is Use.FREE for g in gpus) for gpus in offer.values()), default=0)
        ages, holding = self._held_by_benches(request)
        ends = ends_in(ages, self._lasted_s, min(position, len(ages)))
        models = tuple(request.gpu_models)
        closed = self._closed(request)
        reason = line_words.benches_full(request.gpus, models, free, holding, len(ages), closed)
        basis = f"learned from {count(len(self._lasted_s), 'earlier bench lease')}"
        return reason, self._range(ends, basis)

    def waits_for(self, request: contract.LeaseRequest) -> str:
        """Return what must happen before a server can start for which no jobs can be paused."""
        ages, _ = self._held_by_benches(request)
        return line_words.until_free(len(ages), self._closed(request), len(self.present()))

    def _closed(self, request: contract.LeaseRequest) -> list[str]:
        """Return why nothing starts on the closed nodes that would suit the server."""
        seen = self._observed.now
        return [
            f"{name} {closings.words(seen.nodes.get(name), closed=True)}"
            for name in sorted(seen.closed & seen.inventory.build)
            if suits(request, seen.inventory.facts.get(name, NodeFacts(name)))
        ]

    def _held_by_benches(self, request: contract.LeaseRequest) -> tuple[list[float], int]:
        """Return ages and number of GPUs of the leases that hold GPUs the server could get."""
        by_uuid, now = self._observed.now.inventory.by_uuid, self._observed.settings.clock.now()
        ages, gpus = [], 0
        for lease in self._ledger.leases():
            fitting = [g for g in lease.gpus if g in by_uuid and accepts(request, by_uuid[g])]
            if fitting:
                ages.append(max(0.0, now - lease.since))
                gpus += len(fitting)
        return ages, gpus


def accepts(request: contract.LeaseRequest, device: Device) -> bool:
    """Return whether a server accepts a GPU of this kind."""
    return device.resource == (request.resource or DEFAULT_RESOURCE) and (
        not request.gpu_models or device.model in request.gpu_models
    )


def _asks_whole(request: contract.LeaseRequest) -> bool:
    return request.resource in (None, DEFAULT_RESOURCE)


def rank_of(request: contract.LeaseRequest, device: Device) -> int:
    """Return the position of a GPU's model among the models that a server accepts."""
    return request.gpu_models.index(device.model) if request.gpu_models else 0


DEFAULT_RESOURCE = Device("", 0, "", "", None, simulated=False).resource
"""Resource name of whole GPUs."""
