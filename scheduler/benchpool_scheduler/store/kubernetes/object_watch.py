"""Watch of jobs and leases in the API server, compared with the cache.

Changes by other clients go to the inbox, for the service. An object that only differs from the
cache is written again.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

import msgspec

from benchpool_scheduler.kube import Connection, NotLeading, Reflector
from benchpool_scheduler.resources.jobs import TrainingJobSpec
from benchpool_scheduler.store.inbound import JobGone, LeaseGone
from benchpool_scheduler.store.kubernetes import inbound_jobs, informer, lease_objects
from benchpool_scheduler.store.kubernetes.cache import CachedJob, StoreCache
from benchpool_scheduler.store.kubernetes.encoding import wait_report_in
from benchpool_scheduler.store.kubernetes.inbound_jobs import JobObject, KeptJob, OfferedJob
from benchpool_scheduler.store.kubernetes.inbox import Inbox
from benchpool_scheduler.store.kubernetes.resource_writer import JOBS, ResourceWriter
from benchpool_scheduler.store.kubernetes.uploads import Uploads
from benchpool_scheduler.store.kubernetes.write_priority import SOON
from benchpool_scheduler.store.records import LeaseRecord

log = logging.getLogger(__name__)


class ObjectWatch:
    """Watch that fills the cache at the start, then follows each change.

    Args:
        connection: Connection to the API server. ``namespace``: that of jobs and leases.
        epoch: That of this leader; a later epoch in an object means that it was replaced.
        cache: Cache of the store. ``uploads``: receives the files that found jobs reference.
        inbox: Receives changes. ``writer``: writes overwritten objects again.

    Attributes:
        jobs: Last read version of every job's object.
    """

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        epoch: int,
        cache: StoreCache,
        uploads: Uploads,
        inbox: Inbox,
        writer: ResourceWriter,
    ) -> None:
        self._namespace, self._epoch = namespace, epoch
        self._cache, self._uploads = cache, uploads
        self._inbox, self._writer = inbox, writer
        self.jobs: Reflector[KeptJob] = Reflector(
            connection, JOBS, namespace=namespace, as_=JobObject, keep=self._keep
        )
        self._leases: Reflector[LeaseRecord] = lease_objects.reflector(connection, namespace)
        self._opening: list[JobObject] | None = []
        self._changes: tuple[AsyncGenerator[Any, None], ...] = ()

    async def open(self) -> None:
        """Load all existing objects. Errors: Unavailable when they cannot be listed."""
        of_jobs, of_leases = self.jobs.changes(), self._leases.changes()
        self._changes = (of_jobs, of_leases)
        await informer.wait_until_listed("jobs", of_jobs, self._namespace)
        await informer.wait_until_listed("build leases", of_leases, self._namespace)
        found, self._opening = self._opening or [], None
        for read in sorted(found, key=lambda it: (it.created, it.metadata.name)):
            self._restore(read)
        for lease in sorted(self._leases.items.values(), key=lambda it: (it.since, it.id)):
            self._cache.add_lease(lease)

    def follow(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """Return the coroutines that follow further changes forever."""
        of_jobs, of_leases = self._changes
        return (
            informer.follow(self.jobs, of_jobs, self._take_in),
            informer.follow(self._leases, of_leases, self._take_in_lease),
        )

    async def close(self) -> None:
        """Close the watches, started or not."""
        for changes in self._changes:
            await changes.aclose()

    def take_up(self, cached: CachedJob, offer: OfferedJob) -> None:
        """Fill an accepted job from its offer; report later changes as if they came now."""
        cached.name, cached.uid, cached.version = offer.name, offer.uid, offer.version
        cached.generation, cached.spec, cached.suspend = offer.generation, offer.spec, offer.suspend
        cached.requests = offer.requests
        now = self.jobs.items.get((self._namespace, offer.name))
        if now is None or now.uid != offer.uid:
            cached.gone = True
            self._inbox.put([JobGone(offer.id)])
        elif now.generation > offer.generation:
            self._apply(now, cached)

    def _keep(self, read: JobObject) -> KeptJob | None:
        if self._opening is not None:
            # Pages come in large buffers; copy the spec so that the buffer can be freed.
            spec = msgspec.Raw(bytes(read.spec))
            self._opening.append(msgspec.structs.replace(read, spec=spec))
        return inbound_jobs.seen(read, self._cache.jobs.get(read.id))

    def _restore(self, read: JobObject) -> None:
        """Cache an accepted job; report any other job to the service."""
        it = inbound_jobs.seen(read)
        if it is None:
            return
        if not read.accepted:
            self._inbox.put(inbound_jobs.apply(it, None, self._inbox.offers))
            return
        spec = msgspec.json.decode(read.spec, type=TrainingJobSpec)
        cached = inbound_jobs.found(read, it, spec)
        cached.wait_report = wait_report_in(read.status)
        self._cache.add_job(cached)
        self._uploads.found(spec)
        self._apply(it, cached)

    def _take_in_lease(self, lease: LeaseRecord, gone: bool) -> None:
        # A released lease leaves the cache before its object is deleted.
        if gone and lease.id in self._cache.leases:
            self._inbox.put([LeaseGone(lease.id)])

    def _take_in(self, it: KeptJob, gone: bool) -> None:
        cached = self._cache.jobs.get(it.id)
        if gone:
            self._inbox.put(inbound_jobs.forget(it, cached, self._inbox.offers))
        elif it.epoch > self._epoch:
            raise NotLeading(
                f"Leader {it.epoch} has written a job; this replica is no longer leader "
                f"{self._epoch}."
            )
        else:
            self._apply(it, cached)

    def _apply(self, it: KeptJob, cached: CachedJob | None) -> None:
        news = list(inbound_jobs.apply(it, cached, self._inbox.offers))
        self._inbox.put(news)
        if cached is None or cached.uid != it.uid:
            return
        late = it.epoch < self._epoch and it.revision > cached.written
        if late:  # last write of a former leader; this leader's state prevails
            log.warning("job %s was written by the former leader %d", it.name, it.epoch)
            cached.revision = max(cached.revision, it.revision) + 1
        if late or news or cached.edited:
            self._writer.later(cached, SOON)
