"""Writes the objects of an attempt to the API server; each call may be repeated."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.kube import (
    Connection,
    KubeAlreadyExists,
    KubeConflict,
    KubeNotFound,
    Precondition,
    kinds,
)
from benchpool_scheduler.runtime import Launch, WorkerId
from benchpool_scheduler.runtime.kubernetes import manifests
from benchpool_scheduler.runtime.kubernetes.agent_config import agent_config, pack
from benchpool_scheduler.runtime.kubernetes.agent_tokens import AgentTokens
from benchpool_scheduler.runtime.kubernetes.attempt_registry import AttemptState
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.cluster_views import PodView, keep_pod
from benchpool_scheduler.runtime.kubernetes.raw_objects import RawMeta, RawPod

log = logging.getLogger(__name__)


class MetaOnly(msgspec.Struct, frozen=True):
    """An object's metadata only."""

    metadata: RawMeta


class JobWriter:
    """Writer of objects to the API server.

    Args:
        epoch: Returns the current epoch of leadership, which is written on all objects.
    """

    def __init__(
        self,
        connection: Connection,
        settings: ClusterSettings,
        tokens: AgentTokens,
        epoch: Callable[[], int],
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._tokens = tokens
        self._epoch = epoch

    async def make(self, attempt: AttemptState, launch: Launch) -> None:
        """Create the objects of an attempt.

        They are a Job and a Secret; for a gang also a Service and a NetworkPolicy, for a service a
        NetworkPolicy. The Job comes first, since it owns the others. Its pods wait with closed
        gates. Raises KubeFailure or KubeUnavailable.
        """
        space, epoch = self._settings.namespace, self._epoch()
        packed = self._packed(attempt, launch)
        body = manifests.job(launch, attempt.placements, self._settings, epoch)
        size = attempt.wanted
        attempt.begun = True
        uid = await self._create_job(attempt, body)
        tokens = self._tokens_of(attempt, range(size))
        secret = manifests.secret(launch, uid, packed, tokens, epoch)
        rest = [self._create(kinds.SECRETS, secret, space)]
        if size > 1:
            rest += self._create_gang(launch, uid, epoch)
        elif launch.serves is not None and self._settings.scheduler_labels:
            policy = manifests.entrance(launch, uid, self._settings, epoch)
            rest.append(self._create(kinds.NETWORK_POLICIES, policy, space))
        await asyncio.gather(*rest)
        attempt.uid, attempt.size = uid, size

    async def grow(self, attempt: AttemptState, launch: Launch) -> None:
        """Add workers to a running attempt. Raises the errors of ``make``."""
        space, epoch = self._settings.namespace, self._epoch()
        packed = self._packed(attempt, launch)
        wanted = attempt.wanted
        tokens = self._tokens_of(attempt, range(wanted))
        secret = manifests.secret(launch, attempt.uid, packed, tokens, epoch)
        # The Secret is replaced rather than changed: a permission to change a Secret includes
        # reading it, and the scheduler's account reads none. Running workers keep their copy; new
        # workers wait for it.
        await self._delete(kinds.SECRETS, attempt.name)
        await self._create(kinds.SECRETS, secret, space)
        if attempt.size == 1:
            await asyncio.gather(*self._create_gang(launch, attempt.uid, epoch))
        change = manifests.growing(launch, attempt.placements[:wanted], epoch)
        await self._connection.patch(
            kinds.JOBS, attempt.name, change, namespace=space, as_=MetaOnly
        )
        attempt.size = wanted

    async def open(self, pod: PodView, node: str, slots: Sequence[str]) -> bool:
        """Pin a pod to its node and open its gate; return whether that was done.

        Returns False if the pod was replaced, is open already, is gone, or was written by a later
        leader. Raises KubeFailure or KubeUnavailable.
        """
        now: PodView | None = pod
        while now is not None and now.uid == pod.uid and names.ADMISSION_GATE in now.gates:
            epoch = self._epoch()
            if now.epoch > epoch:
                log.error("pod %s was written by a later leader (%d)", pod.name, now.epoch)
                return False
            try:
                await self._connection.patch(
                    kinds.PODS,
                    now.name,
                    manifests.opening(now, node, slots, epoch),
                    namespace=now.namespace,
                    strategic=True,
                    as_=msgspec.Raw,
                )
            except KubeNotFound:
                return False
            except KubeConflict:
                # The pod was changed since it was read, or an earlier try of this runtime has
                # opened it.
                now = await self._pod_now(now)
            else:
                return True
        log.info(
            "gate of pod %s not opened: the pod was replaced or its gate is already open", pod.name
        )
        return False

    async def _pod_now(self, pod: PodView) -> PodView | None:
        try:
            found = await self._connection.get(
                kinds.PODS, pod.name, namespace=pod.namespace, as_=RawPod
            )
        except KubeNotFound:
            return None
        return replace(keep_pod(found), job=pod.job, attempt=pod.attempt, index=pod.index)

    async def delete_pod(self, pod: PodView, grace_s: int) -> None:
        """Delete this very pod, if it still exists. Raises KubeFailure or KubeUnavailable."""
        try:
            await self._connection.delete(
                kinds.PODS,
                pod.name,
                namespace=pod.namespace,
                grace_s=grace_s,
                precondition=Precondition(uid=pod.uid),
            )
        except (KubeNotFound, KubeConflict):
            return

    async def delete_job(self, name: str) -> None:
        """Delete a Job with all that it owns, if it exists."""
        await self._delete(kinds.JOBS, name)

    async def delete_jobs(self, job: str) -> None:
        """Delete the Jobs of all attempts of a job. Raises KubeFailure or KubeUnavailable."""
        await self._connection.delete_all(
            kinds.JOBS, namespace=self._settings.namespace, labels=f"{names.JOB}={job}"
        )

    async def has_secret(self, name: str) -> bool:
        """Return whether an attempt's Secret exists, without permission to read it."""
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
        try:
            await self._connection.create(
                kinds.SECRETS,
                body,
                namespace=self._settings.namespace,
                as_=MetaOnly,
                dry_run=True,
            )
        except KubeAlreadyExists:
            return True
        return False

    async def _create_job(self, attempt: AttemptState, body: manifests.Manifest) -> str:
        space = self._settings.namespace
        try:
            made = await self._connection.create(kinds.JOBS, body, namespace=space, as_=MetaOnly)
        except KubeAlreadyExists:
            # An earlier try or another leader created it: the name identifies this very attempt.
            made = await self._connection.get(
                kinds.JOBS, attempt.name, namespace=space, as_=MetaOnly
            )
        return str(made.metadata.uid)

    def _create_gang(self, launch: Launch, uid: str, epoch: int) -> list[Coroutine[Any, Any, None]]:
        space = self._settings.namespace
        return [
            self._create(kinds.SERVICES, manifests.service(launch, uid, epoch), space),
            self._create(kinds.NETWORK_POLICIES, manifests.peers(launch, uid, epoch), space),
        ]

    async def _create(self, kind: kinds.Kind, body: manifests.Manifest, space: str) -> None:
        try:
            await self._connection.create(kind, body, namespace=space, as_=MetaOnly)
        except KubeAlreadyExists:
            return

    async def _delete(self, kind: kinds.Kind, name: str) -> None:
        try:
            await self._connection.delete(kind, name, namespace=self._settings.namespace)
        except KubeNotFound:
            return

    def _packed(self, attempt: AttemptState, launch: Launch) -> bytes:
        key = self._tokens.of_gang(attempt.job, attempt.number)
        alone = len(launch.nodes) == 1
        return pack(agent_config(launch, self._settings, "" if alone else key))

    def _tokens_of(self, attempt: AttemptState, indices: Iterable[int]) -> dict[int, str]:
        return {i: self._tokens.of(WorkerId(attempt.job, attempt.number, i)) for i in indices}
