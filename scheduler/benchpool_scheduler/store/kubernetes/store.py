"""The store port on custom resources: ``TrainingJob``, ``BuildLease`` and ``Project.status``.

Each job is one object. A commit writes every object that it changes once, concurrently, and returns
when the API server has them all. Facts that the runtime reports again after a restart, such as
running workers, are written later and at a limited rate. No state is in local files: a new leader
rebuilds all of it from one list.

A commit that has begun is finished, or the process ends. While the API server is unreachable, the
commit waits and reports it. A replaced leader writes nothing more (``NotLeading``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from benchpool_scheduler.contract import Job, JobSubmission
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.kube import Connection, NotLeading, Reflector
from benchpool_scheduler.resources.declaring import envelope
from benchpool_scheduler.resources.submissions import (
    INLINE,
    as_spec,
    as_submission,
)
from benchpool_scheduler.store.inbound import Written
from benchpool_scheduler.store.kubernetes import lease_objects, usage
from benchpool_scheduler.store.kubernetes.cache import CachedJob, StoreCache, WriteSet
from benchpool_scheduler.store.kubernetes.decoding import requests_of
from benchpool_scheduler.store.kubernetes.edits import EditRefused
from benchpool_scheduler.store.kubernetes.encoding import (
    WaitReport,
    is_news,
    is_plain,
    metadata_of,
    wait_report_of,
)
from benchpool_scheduler.store.kubernetes.fsspec_objects import FsspecObjects
from benchpool_scheduler.store.kubernetes.inbound_jobs import KeptJob
from benchpool_scheduler.store.kubernetes.inbox import Inbox
from benchpool_scheduler.store.kubernetes.job_events import JobEvents
from benchpool_scheduler.store.kubernetes.object_watch import ObjectWatch
from benchpool_scheduler.store.kubernetes.patient_calls import PatientCalls, for_all
from benchpool_scheduler.store.kubernetes.resource_writer import JOBS, ResourceWriter
from benchpool_scheduler.store.kubernetes.uploads import Uploads
from benchpool_scheduler.store.kubernetes.write_priority import AT_LEISURE, SOON
from benchpool_scheduler.store.records import AddJob, Change, Note, StoredContents

log = logging.getLogger(__name__)

END_S = 5.0


class KubernetesStore:
    """Store of one pool in one namespace. Also an ``Inbound``.

    Args:
        connection: Its guard, if any, must stop the writes of a replaced leader.
        namespace: Namespace of jobs and leases.
        objects: Store of uploaded contents.
        epoch: That of this leader; 0 for a single replica without election.
        report: Called with a sentence while writes fail, and with None after recovery.
        lost: Called once when another leader has taken over: the process must end.
    """

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        objects: FsspecObjects,
        *,
        epoch: int = 0,
        report: Callable[[str | None], None] = lambda sentence: None,
        lost: Callable[[NotLeading], None] = lambda failed: None,
    ) -> None:
        self._connection = connection
        self._namespace = namespace
        self._uploads = Uploads(objects)
        self._epoch = epoch
        self._lost = lost
        self._cache = StoreCache()
        self._calls = PatientCalls(report)
        self._events = JobEvents(connection, namespace)
        self.writer = ResourceWriter(connection, namespace, epoch, self._calls, self._events)
        self._inbox = Inbox(connection, namespace, self._uploads, self._calls, self._events)
        self._watch = ObjectWatch(
            connection, namespace, epoch, self._cache, self._uploads, self._inbox, self.writer
        )
        self._tasks: list[asyncio.Task[None]] = []

    # ------------------------------------------------------------------ life

    @property
    def reflector(self) -> Reflector[KeptJob]:
        """Return the cache of every job's object as last read."""
        return self._watch.jobs

    @property
    def listening(self) -> asyncio.Task[None]:
        """Return the task that follows external changes to jobs while the store is open."""
        return self._tasks[0]

    async def open(self) -> StoredContents:
        """Load everything. Errors: Unavailable when the API server or the objects are
        unreachable.
        """
        await self._uploads.load()
        await self._watch.open()
        contents = self._cache.contents(*await usage.remembered(self._connection))
        self._tasks = [
            *map(self._begin, self._watch.follow()),
            *(self._begin(self.writer.write_later(priority)) for priority in (SOON, AT_LEISURE)),
            self._begin(self._uploads.read_lists()),
            self._begin(self._events.post()),
        ]
        return contents

    async def close(self) -> None:
        """Write pending changes and close the store."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._watch.close()
        with contextlib.suppress(TimeoutError, BenchpoolError):
            async with asyncio.timeout(END_S):
                await self.writer.finish()
        await self.writer.close()

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        failed = None if task.cancelled() else task.exception()
        if isinstance(failed, NotLeading):
            self._lost(failed)
        elif failed is not None:
            log.error("background task of the store exited", exc_info=failed)

    # ------------------------------------------------------------------ commits

    async def commit(
        self, *changes: Change, as_written: Callable[[str], None] | None = None
    ) -> None:
        """Apply all changes; they are in the API server when this returns.

        Errors: Conflict, and nothing has changed; InvalidInput for a job that the API server
        refuses; Unavailable when contents cannot be stored; NotLeading.
        """
        self._cache.check(changes)
        # The caller may be cancelled; a commit that has begun is finished.
        await asyncio.shield(asyncio.ensure_future(self._commit(changes, as_written)))

    async def _commit(
        self, changes: tuple[Change, ...], as_written: Callable[[str], None] | None
    ) -> None:
        write_set = self._cache.apply(changes)
        try:
            await self._write(write_set, as_written)
        except NotLeading as failed:
            self._lost(failed)
            raise

    async def _write(
        self, write_set: WriteSet, as_written: Callable[[str], None] | None = None
    ) -> None:
        jobs, writer = self._cache.jobs, self.writer

        async def settle(cached: CachedJob) -> None:
            await writer.settle(cached)
            if as_written is not None:
                as_written(cached.stored.job.id)

        for upload in write_set.uploads:
            await self._uploads.keep(upload)
        for change in write_set.added.values():
            await self._add(change)
        for id_ in write_set.later:
            writer.later(jobs[id_], SOON)
        for id_ in write_set.returned:
            await writer.delete(lease_objects.LEASES, id_)
        freeing = [it for it in map(jobs.get, write_set.jobs) if it and not _holds(it)]
        taking = [it for it in map(jobs.get, write_set.jobs) if it and _holds(it)]
        for group in (freeing, taking):
            await for_all(settle, group)
        for lease in write_set.leases:
            await self._calls.until_done(
                partial(lease_objects.write, self._connection, self._namespace, lease)
            )
        for cached in write_set.dropped:
            self._uploads.unname(cached.spec_now)
            if not cached.gone:
                await writer.delete(JOBS, cached.name, cached.uid)
            await self._uploads.drop_environment(cached.stored.job.id, cached.spec_now)
        await self._calls.until_done(partial(usage.save, self._connection, write_set, self._epoch))

    async def _add(self, change: AddJob) -> None:
        job = change.job
        cached = self._cache.jobs[job.id]
        offer = self._inbox.take_asked(job.id)
        if offer is not None:
            self._watch.take_up(cached, offer)
        else:
            try:
                await self._make(cached, change)
            except BaseException:
                self._cache.forget_added(job.id)
                raise
        self._uploads.name(cached.spec_now, change.objects)
        if offer is None and not is_plain(cached.stored):
            await self.writer.settle(cached)
        else:
            # The annotation shows the acceptance, or the job is found again in the same way.
            self.writer.later(cached, AT_LEISURE)

    async def _make(self, cached: CachedJob, change: AddJob) -> None:
        job = change.job
        submission = msgspec.json.decode(change.submission, type=JobSubmission)
        bundle = None
        if len(submission.files) > INLINE:
            bundle = await self._uploads.bundle(submission.files)
        environment = await self._uploads.keep_environment(job.id, submission.env)
        spec = as_spec(submission, job.user, job.name, job.project, bundle, environment)
        cached.spec, cached.requests = msgspec.json.encode(spec), requests_of(job)
        about = metadata_of(job)
        await self.writer.create(cached, envelope(JOBS, about, spec=msgspec.Raw(cached.spec)))

    # ------------------------------------------------------------------ reading

    def submission(self, job: str) -> bytes | None:
        """Return the submission of a job as JSON, or None when the job does not exist.

        A long file list is read from the objects.
        """
        cached = self._cache.jobs.get(job)
        if cached is None:
            return None
        spec = cached.spec_now
        files = self._uploads.files_now(spec.bundle) if spec.bundle else ()
        submission = as_submission(spec, files, self._uploads.environment_now(job, spec))
        job_now = cached.stored.job
        return msgspec.json.encode(
            msgspec.structs.replace(submission, name=job_now.name, project=job_now.project)
        )

    def objects_of(self, user: str, hashes: Iterable[str]) -> frozenset[str]:
        """Return the hashes that the user has uploaded."""
        return self._uploads.of(user, hashes)

    def stored_bytes(self, user: str) -> int:
        """Return the size in bytes of all stored objects that the user has uploaded."""
        return self._uploads.stored_bytes(user)

    async def unused_objects(self, before: float) -> tuple[str, ...]:
        """Return objects that no job references and no user has uploaded since ``before``."""
        return self._uploads.unused(before)

    async def forget_objects(self, hashes: Iterable[str]) -> None:
        """Remove these objects from the list of uploads."""
        await self._uploads.forget(hashes)

    def size(self) -> int:
        """Return the size of all specs in bytes; statuses have about the same size."""
        return sum(len(cached.spec) for cached in self._cache.jobs.values())

    # ------------------------------------------------------------------ reports

    def publish(self, reports: Mapping[str, WaitReport]) -> None:
        """Publish why jobs wait and when they may start; written later."""
        for id_, it in reports.items():
            cached = self._cache.jobs.get(id_)
            if cached is not None and it != cached.wait_report:
                news = is_news(cached.wait_report, it)
                cached.wait_report = it
                if news:
                    cached.revision += 1
                    self.writer.later(cached, AT_LEISURE)

    def announce(self, jobs: Sequence[Job]) -> None:
        """Publish why these jobs wait, from their public form; written later."""
        self.publish({job.id: wait_report_of(job) for job in jobs})

    # ------------------------------------------------------------------ external changes

    def written(self) -> AsyncIterator[Written]:
        """Yield external changes in order, beginning with those found at ``open``."""
        return self._inbox.written()

    def id_named(self, name: str) -> str | None:
        """Return the ID of the job whose object has this name, or None."""
        return next((id_ for id_, it in self._cache.jobs.items() if it.name == name), None)

    async def refuse(self, job: str, reason: Note) -> None:
        """Write to the object why its job was not accepted. Errors: NotLeading."""
        await self._inbox.refuse(job, reason)

    def put_back(self, job: str, field: str, why: str) -> None:
        """Reset a field of the object to the job's value, with a reason."""
        cached = self._cache.jobs.get(job)
        if cached is None or cached.gone:
            return
        cached.asked, cached.refused = (field,), EditRefused(why, time.time())
        cached.revision += 1
        self.writer.later(cached, SOON)

    async def restore(self, lease: str) -> None:
        """Create the deleted object of a lease again. Errors: NotLeading."""
        cached = self._cache.leases.get(lease)
        if cached is None:
            return
        make = partial(lease_objects.write, self._connection, self._namespace, cached)
        await self._calls.until_done(make)
        if lease not in self._cache.leases:  # released meanwhile
            await self.writer.delete(lease_objects.LEASES, lease)


def _holds(cached: CachedJob) -> bool:
    newest = cached.stored.newest
    return newest is not None and bool(newest.live_workers)
