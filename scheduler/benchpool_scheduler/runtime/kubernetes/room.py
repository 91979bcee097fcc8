"""What there is on the cluster, kept as answers that are made again only when something changed."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchpool_scheduler.runtime import Device, NodeFacts
from benchpool_scheduler.runtime.kubernetes import facts, slots
from benchpool_scheduler.runtime.kubernetes.book import Book
from benchpool_scheduler.runtime.kubernetes.following import Following
from benchpool_scheduler.runtime.kubernetes.refusals import Refusals
from benchpool_scheduler.runtime.kubernetes.seen import PodSeen, PodUse
from benchpool_scheduler.runtime.kubernetes.settings import ClusterSettings


class Room:
    """GPUs and nodes as the core shall see them.

    Attributes:
        leased: The slots of each lease in force.
    """

    def __init__(self, settings: ClusterSettings, book: Book) -> None:
        self._settings = settings
        self._book = book
        self._steady = slots.Steady(settings.dip_s)
        self._refusals = Refusals(settings.refused_s)
        self._out: dict[str, str] = {}
        self._devices: tuple[Device, ...] | None = None
        self._nodes: tuple[NodeFacts, ...] | None = None
        self._told_devices: tuple[Device, ...] = ()
        self._told_nodes: tuple[NodeFacts, ...] = ()
        self._looked = 0.0
        self._opened = False
        self.leased: dict[str, tuple[str, ...]] = {}

    def changed(self) -> None:
        """Note that the answers must be made again."""
        self._devices = self._nodes = None

    def opened(self) -> None:
        """From now on, pods of ours that nobody expects are nobody's."""
        self._opened = True
        self.changed()

    def hold(self, lease: str, held: tuple[str, ...]) -> None:
        """Note the slots of a lease."""
        self.leased[lease] = held
        self.changed()

    def release(self, lease: str) -> None:
        """Forget a lease."""
        self.leased.pop(lease, None)
        self.changed()

    def refuse(self, node: str, job: str, text: str) -> None:
        """Note that a node did not take a job: after several jobs it gets no other for a while."""
        self._refusals.add(node, job, text, time.monotonic())

    def leave_alone(self, node: str, text: str) -> None:
        """Keep a node free of others for a while, each time longer."""
        self._refusals.leave_alone(node, text, time.monotonic())

    def devices(self, cluster: Following) -> tuple[Device, ...]:
        """Return the GPUs."""
        now = time.monotonic()
        out = self._refusals.out(now)
        if out != self._out:
            self._out, self._devices = out, None
        if self._devices is None or (self._steady.in_doubt and now != self._looked):
            self._looked = now
            held = slots.Held.of(
                self._ours(cluster),
                [*cluster.others, *self._nobodys(cluster)],
                [*self._book.chosen(), *(one for held in self.leased.values() for one in held)],
            )
            found = slots.devices(
                cluster.nodes,
                held,
                self._steady,
                now,
                self._settings.gpu_prefixes,
                out,
                self._settings.tolerations,
            )
            # The same tuple again: whoever has it need not compare thousands of GPUs.
            self._devices = self._told_devices if found == self._told_devices else found
            self._told_devices = self._devices
        return self._devices

    def nodes(self, cluster: Following) -> tuple[NodeFacts, ...]:
        """Return the nodes."""
        if self._nodes is None:
            others = [*cluster.others, *self._nobodys(cluster)]
            found = facts.facts(cluster.nodes, others, self._settings.tolerations)
            self._nodes = self._told_nodes if found == self._told_nodes else found
            self._told_nodes = self._nodes
        return self._nodes

    def _ours(self, cluster: Following) -> Iterator[PodSeen]:
        return (pod for pod in cluster.pods if self._is_ours(pod))

    def _nobodys(self, cluster: Following) -> Iterator[PodUse]:
        """Yield what pods hold that carry our labels and are not expected: they are ending."""
        for pod in cluster.pods:
            if pod.node and not pod.over and not self._is_ours(pod):
                yield PodUse(pod.node, pod.requests)

    def _is_ours(self, pod: PodSeen) -> bool:
        if not self._opened:
            return True
        if pod.job:
            attempt = self._book.attempts.get((pod.job, pod.attempt))
            seat = None if attempt is None else attempt.seats.get(pod.index)
            return seat is not None and not seat.over
        return pod.lease in self.leased
