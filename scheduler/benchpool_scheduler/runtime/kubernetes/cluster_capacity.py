"""GPUs and nodes of the cluster, cached until something changes."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchpool_scheduler.runtime import Device, NodeFacts
from benchpool_scheduler.runtime.kubernetes import gpu_slots, node_facts
from benchpool_scheduler.runtime.kubernetes.attempt_registry import AttemptRegistry
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.cluster_views import PodUse, PodView
from benchpool_scheduler.runtime.kubernetes.informers import Informers
from benchpool_scheduler.runtime.kubernetes.node_backoff import NodeBackoff


class ClusterCapacity:
    """GPUs and nodes as the core sees them.

    Attributes:
        leased: The slots of each lease in force.
    """

    def __init__(self, settings: ClusterSettings, registry: AttemptRegistry) -> None:
        self._settings = settings
        self._registry = registry
        self._steady = gpu_slots.SteadyCount(settings.dip_s)
        self._backoff = NodeBackoff(settings.refused_s)
        self._out: dict[str, str] = {}
        self._devices: tuple[Device, ...] | None = None
        self._nodes: tuple[NodeFacts, ...] | None = None
        self._last_devices: tuple[Device, ...] = ()
        self._last_nodes: tuple[NodeFacts, ...] = ()
        self._looked = 0.0
        self._opened = False
        self.leased: dict[str, tuple[str, ...]] = {}

    def changed(self) -> None:
        """Invalidate the cache."""
        self._devices = self._nodes = None

    def opened(self) -> None:
        """From now on, count pods of benchpool that are not expected as foreign."""
        self._opened = True
        self.changed()

    def hold(self, lease: str, held: tuple[str, ...]) -> None:
        """Record the slots of a lease."""
        self.leased[lease] = held
        self.changed()

    def release(self, lease: str) -> None:
        """Forget a lease."""
        self.leased.pop(lease, None)
        self.changed()

    def refuse(self, node: str, witness: str, text: str) -> None:
        """Record that a node rejected a job; several witnesses make it avoided for a while."""
        self._backoff.add(node, witness, text, time.monotonic())

    def leave_alone(self, node: str, text: str) -> None:
        """Keep a node free of other jobs for a while, each time longer."""
        self._backoff.leave_alone(node, text, time.monotonic())

    def devices(self, cluster: Informers) -> tuple[Device, ...]:
        """Return the GPUs."""
        now = time.monotonic()
        out = self._backoff.out(now)
        if out != self._out:
            self._out, self._devices = out, None
        if self._devices is None or (self._steady.in_doubt and now != self._looked):
            self._looked = now
            held = gpu_slots.GpuHolders.of(
                self._ours(cluster),
                [*cluster.others, *self._unexpected(cluster)],
                [*self._registry.chosen(), *(one for held in self.leased.values() for one in held)],
            )
            found = gpu_slots.devices(
                cluster.nodes,
                held,
                self._steady,
                now,
                self._settings.gpu_prefixes,
                out,
                self._settings.tolerations,
            )
            # Return the same tuple, so that callers need not compare thousands of GPUs.
            self._devices = self._last_devices if found == self._last_devices else found
            self._last_devices = self._devices
        return self._devices

    def nodes(self, cluster: Informers) -> tuple[NodeFacts, ...]:
        """Return the nodes."""
        if self._nodes is None:
            others = [*cluster.others, *self._unexpected(cluster)]
            found = node_facts.node_facts(cluster.nodes, others, self._settings.tolerations)
            self._nodes = self._last_nodes if found == self._last_nodes else found
            self._last_nodes = self._nodes
        return self._nodes

    def _ours(self, cluster: Informers) -> Iterator[PodView]:
        return (pod for pod in cluster.pods if self._is_ours(pod))

    def _unexpected(self, cluster: Informers) -> Iterator[PodUse]:
        """Yield the requests of ending pods: they carry benchpool's labels and are not expected."""
        for pod in cluster.pods:
            if pod.node and not pod.over and not self._is_ours(pod):
                yield PodUse(pod.node, pod.requests)

    def _is_ours(self, pod: PodView) -> bool:
        if not self._opened:
            return True
        if pod.job:
            attempt = self._registry.attempts.get((pod.job, pod.attempt))
            state = None if attempt is None else attempt.workers.get(pod.index)
            return state is not None and not state.over
        return pod.lease in self.leased
