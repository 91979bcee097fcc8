"""Caches of the cluster for the runtime: pods, nodes and volumes, kept current by watches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from contextlib import aclosing
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.kube import (
    Changed,
    Connection,
    KubeForbidden,
    KubeNotFound,
    Listed,
    Reflector,
    Vanished,
    kinds,
)
from benchpool_scheduler.runtime import Pinned
from benchpool_scheduler.runtime.kubernetes import cluster_views as views
from benchpool_scheduler.runtime.kubernetes import device_claims, images, raw_objects, volumes
from benchpool_scheduler.runtime.kubernetes.admitted import raw_admitted_pods

log = logging.getLogger(__name__)

ROLES = (names.ROLE_WORKER, names.ROLE_NOTEBOOK, names.ROLE_ADMITTED)


@dataclass(frozen=True, slots=True)
class _Reflectors:
    """One cache for each kind of object that the runtime reads.

    Attributes:
        ours: Pods of benchpool. ``others``: requests of foreign pods on their nodes.
        admitted: Pods created outside benchpool that get their GPUs from it.
        notebooks: Images of running notebooks.
        device_claims: GPUs held by device claims.
    """

    ours: Reflector[views.PodView]
    others: Reflector[views.PodUse]
    admitted: Reflector[raw_admitted_pods.AdmittedPod]
    nodes: Reflector[views.NodeView]
    claims: Reflector[volumes.ClaimView]
    volumes: Reflector[volumes.VolumeView]
    notebooks: Reflector[images.ImageView]
    device_claims: Reflector[views.PodUse]

    @property
    def every(self) -> tuple[Reflector[Any], ...]:
        """All caches."""
        return tuple(getattr(self, one.name) for one in fields(self))


def _reflectors(connection: Connection, namespace: str) -> _Reflectors:
    """Return the caches, empty; ``namespace`` is that of the notebooks."""
    return _Reflectors(
        ours=Reflector(
            connection,
            kinds.PODS,
            labels=f"{names.ROLE} in ({names.ROLE_WORKER},{names.ROLE_NOTEBOOK})",
            as_=raw_objects.RawPod,
            keep=views.keep_pod,
        ),
        others=Reflector(
            connection,
            kinds.PODS,
            # Also matches pods without the label, and pods with an unknown role.
            labels=f"{names.ROLE} notin ({','.join(ROLES)})",
            fields="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
            as_=raw_objects.RawPod,
            keep=views.keep_use,
        ),
        admitted=Reflector(
            connection,
            kinds.PODS,
            labels=f"{names.ROLE}={names.ROLE_ADMITTED}",
            as_=raw_admitted_pods.RawAdmittedPod,
            keep=raw_admitted_pods.keep_admitted,
        ),
        nodes=Reflector(connection, kinds.NODES, as_=raw_objects.RawNode, keep=views.keep_node),
        claims=Reflector(connection, kinds.CLAIMS, as_=volumes.RawClaim, keep=volumes.keep_claim),
        volumes=Reflector(
            connection, kinds.VOLUMES, as_=volumes.RawVolume, keep=volumes.keep_volume
        ),
        notebooks=Reflector(
            connection,
            kinds.PODS,
            namespace=namespace,
            labels=volumes.WHOSE,
            fields="status.phase=Running",
            as_=images.RawNotebookPod,
            keep=images.keep_image,
        ),
        device_claims=Reflector(
            connection,
            kinds.DEVICE_CLAIMS,
            as_=device_claims.RawDeviceClaim,
            keep=device_claims.keep_claim,
        ),
    )


class Informers:
    """Caches of the cluster's state.

    Args:
        pod_changed: Called for each pod of benchpool that is new, changed, or gone (second
            argument).
        changed: Called when GPUs or nodes may have changed.
        namespace: Namespace of the notebooks.

    Attributes:
        news: Set when a node, or the use of a node by foreign pods, has changed.
        admitted_news: Set when a pod created outside benchpool that gets GPUs from it has changed.
        admitted_changes: Number of such changes.
    """

    def __init__(
        self,
        connection: Connection,
        pod_changed: Callable[[views.PodView, bool], None],
        changed: Callable[[], None],
        namespace: str,
    ) -> None:
        self._pod_changed = pod_changed
        self._changed = changed
        self._caches = _reflectors(connection, namespace)
        self._missing = len(self._caches.every)
        self.news, self.admitted_news = asyncio.Event(), asyncio.Event()
        self.admitted_changes = 0
        self._listed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start the watches, and wait until every kind was listed once."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._follow(one)) for one in self._caches.every]
        listed = asyncio.create_task(self._listed.wait())
        try:
            done, _ = await asyncio.wait(
                {listed, *self._tasks}, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            listed.cancel()
        for task in done - {listed}:
            task.result()  # raises permanent failures, such as missing permissions

    async def close(self) -> None:
        """Stop all watches."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def pods(self) -> Iterable[views.PodView]:
        """Pods that get their GPUs from benchpool."""
        admitted = (pod.view for pod in self._caches.admitted.items.values())
        return chain(self._caches.ours.items.values(), admitted)

    @property
    def admitted(self) -> Collection[raw_admitted_pods.AdmittedPod]:
        """Admitted pods that were created outside benchpool."""
        return self._caches.admitted.items.values()

    @property
    def others(self) -> Iterable[views.PodUse]:
        """Requests of foreign pods and of device claims."""
        return chain(self._caches.others.items.values(), self._caches.device_claims.items.values())

    @property
    def nodes(self) -> Iterable[views.NodeView]:
        """All nodes."""
        return self._caches.nodes.items.values()

    def node(self, name: str) -> views.NodeView | None:
        """Return a node, or None."""
        return self._caches.nodes.items.get(("", name))

    def nodes_for_claim(self, namespace: str, claim: str) -> frozenset[str] | None:
        """Return the nodes that can use a claim; None for all nodes or not known yet."""
        found = self._caches.claims.items.get((namespace, claim))
        if found is None or not found.volume:
            return None
        volume = self._caches.volumes.items.get(("", found.volume))
        return None if volume is None else volumes.nodes_for(volume, self.nodes)

    def home_of(self, namespace: str, user: str) -> str | None:
        """Return the claim of a user's home that many pods may mount; None for none or several."""
        found = [
            name
            for (space, name), claim in self._caches.claims.items.items()
            if space == namespace and claim.user == user and claim.for_many
        ]
        return found[0] if len(found) == 1 else None

    def pinned(self, user: str, image: str) -> Pinned:
        """Return an image with the digest that a notebook of the user runs."""
        return images.pin(image, user, self._caches.notebooks.items.values())

    async def _follow(self, reflector: Reflector[Any]) -> None:
        try:
            await self._listen(reflector)
        except (KubeNotFound, KubeForbidden) as failed:
            if reflector is not self._caches.device_claims:
                raise
            # The kind does not exist before Kubernetes 1.34, or is disabled.
            log.info("GPUs that pods hold by device claims are not counted: %s", failed)
            self._count_listed()
            await asyncio.Event().wait()

    def _count_listed(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._listed.set()

    async def _listen(self, reflector: Reflector[Any]) -> None:
        once = False
        async with aclosing(reflector.changes()) as changes:
            async for change in changes:
                if isinstance(change, Listed):
                    if not once:
                        once = True
                        self._count_listed()
                    continue
                if isinstance(change, Changed) and change.item == change.before:
                    continue
                if reflector is self._caches.ours:
                    self._pod_changed(change.item, isinstance(change, Vanished))
                if reflector is self._caches.admitted:
                    self._pod_changed(change.item.view, isinstance(change, Vanished))
                    self.admitted_changes += 1
                    self.admitted_news.set()
                if reflector is not self._caches.notebooks:
                    self._changed()
                if reflector is self._caches.nodes or reflector is self._caches.others:
                    self.news.set()
