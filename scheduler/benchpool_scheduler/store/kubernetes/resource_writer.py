"""Writer of objects: one write per object at a time, each with preconditions.

A status is written with the last known resource version. When that fails, another client wrote in
between, and the object is read back:

- The status has a higher epoch: another leader has taken over. ``NotLeading`` ends this one, and
  nothing more is written.
- The status has the revision that was to be written: an earlier try succeeded and its answer was
  lost.
- Anything else, e.g. a user's edit of the spec, or the last write of a former leader: the write is
  repeated on the present version. Edits of accepted fields are put back first (``edits``), so that
  a status always describes the spec beside it.

Fields of ``SpecRequests`` that were changed here, not at the object, are written into its spec
first.

While the API server is unreachable, writes are retried forever, and ``report`` is called. A commit
that has begun is finished, or the process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.kube import (
    Connection,
    Kind,
    KubeAlreadyExists,
    KubeConflict,
    KubeForbidden,
    KubeInvalid,
    KubeNotFound,
    NotLeading,
    Precondition,
)
from benchpool_scheduler.resources.declaring import ObjectMeta, envelope
from benchpool_scheduler.resources.jobs import TRAINING_JOBS, SpecRequests
from benchpool_scheduler.store.kubernetes import edits
from benchpool_scheduler.store.kubernetes.cache import CachedJob
from benchpool_scheduler.store.kubernetes.decoding import requests_of
from benchpool_scheduler.store.kubernetes.encoding import StoredJob, as_status, without_history
from benchpool_scheduler.store.kubernetes.job_events import JobEvents
from benchpool_scheduler.store.kubernetes.patient_calls import PatientCalls, for_all
from benchpool_scheduler.store.kubernetes.write_priority import (
    AT_LEISURE,
    LATEST_S,
    SOON,
    PendingWrites,
    WritePriority,
)

log = logging.getLogger(__name__)

JOBS = TRAINING_JOBS.kind

SPEC_NAMES = dict(
    zip(SpecRequests.__struct_fields__, SpecRequests.__struct_encode_fields__, strict=True)
)
"""JSON names of the fields of ``SpecRequests``."""


class _Stamp(Struct, frozen=True):
    epoch: int = 0
    revision: int = 0


class _Written(Struct, frozen=True):
    """Parts of an object after our own write."""

    metadata: ObjectMeta
    status: _Stamp = _Stamp()


class _Found(Struct, frozen=True):
    """Parts of an object that another client may have written."""

    metadata: ObjectMeta
    spec: msgspec.Raw
    status: _Stamp = _Stamp()


class ResourceWriter:
    """Writer of jobs and other objects.

    Args:
        epoch: That of this leader.
        calls: Retries failed writes. ``events``: receives each state that was written.
    """

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        epoch: int,
        calls: PatientCalls,
        events: JobEvents,
    ) -> None:
        self._connection = connection
        self._events = events
        self._namespace = namespace
        self._epoch = epoch
        self._calls = calls
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._pending = {priority: PendingWrites() for priority in (SOON, AT_LEISURE)}
        self._urgent = 0
        self._calm = asyncio.Event()
        self._calm.set()

    # ------------------------------------------------------------------ jobs

    async def settle(self, cached: CachedJob) -> None:
        """Wait until the API server has the current revision. Errors: NotLeading."""
        wanted = cached.revision
        self._urgent += 1
        self._calm.clear()
        try:
            while cached.written < wanted and not cached.gone:
                await self._once(cached)
        finally:
            self._urgent -= 1
            if not self._urgent:
                self._calm.set()

    async def _once(self, cached: CachedJob) -> None:
        """Write an object once, or wait for the write in progress."""
        id_ = cached.stored.job.id
        task = self._under_way.get(id_)
        if task is None:
            task = self._under_way[id_] = asyncio.create_task(self._alone(id_, cached))
        await asyncio.shield(task)

    async def _alone(self, id_: str, cached: CachedJob) -> None:
        try:
            await self._calls.until_done(partial(self._write, cached))
        finally:
            # Done here, without a callback, so that no later caller finds a finished write.
            del self._under_way[id_]

    async def _write(self, cached: CachedJob) -> None:
        revision = cached.revision
        if cached.edited:
            await self._look_again(cached, revision)
            if cached.gone or cached.edited:
                return
        if cached.asked:
            await self._ask(cached, revision)
            if cached.gone or cached.asked:
                return
        try:
            await self._put(cached, cached.stored, revision)
        except KubeInvalid as refused:
            # A job that cannot be written must not block all other jobs.
            log.error("job %s is written without its history: %s", cached.name, refused.text)
            try:
                await self._put(cached, without_history(cached.stored), revision)
            except KubeInvalid:
                log.exception("job %s cannot be written and will be lost at a restart", cached.name)
                cached.written = max(cached.written, revision)

    async def _ask(self, cached: CachedJob, revision: int) -> None:
        """Write the fields that were changed here into the spec; other requests in it stay."""
        now = requests_of(cached.stored.job)
        asked = {name: getattr(now, name) for name in cached.asked}
        spec = {SPEC_NAMES[name]: value for name, value in asked.items()}
        change = {"metadata": {"resourceVersion": cached.version}, "spec": spec}
        try:
            answer: _Written = await self._connection.patch(
                JOBS, cached.name, change, namespace=self._namespace, as_=_Written
            )
        except KubeNotFound:
            cached.gone = True
        except KubeConflict:
            await self._look_again(cached, revision)
        except (KubeInvalid, KubeForbidden) as refused:
            log.error("the object of job %s cannot show %s: %s", cached.name, asked, refused.text)
            cached.asked = ()
        else:
            cached.asked = ()
            cached.requests = replace(cached.requests, **asked)
            cached.version = answer.metadata.resource_version or ""
            cached.generation = max(cached.generation, answer.metadata.generation or 0)

    async def _put(self, cached: CachedJob, stored: StoredJob, revision: int) -> None:
        status = as_status(
            stored,
            cached.wait_report,
            epoch=self._epoch,
            revision=revision,
            generation=cached.generation,
            suspend=cached.suspend,
            refused=cached.refused,
        )
        about = ObjectMeta(cached.name, resource_version=cached.version)
        try:
            answer: _Written = await self._connection.replace(
                JOBS,
                cached.name,
                envelope(JOBS, about, spec=msgspec.Raw(cached.spec), status=status),
                namespace=self._namespace,
                subresource="status",
                as_=_Written,
            )
        except KubeNotFound:
            cached.gone = True
        except KubeConflict:
            await self._look_again(cached, revision)
        else:
            cached.version = answer.metadata.resource_version or ""
            cached.written = max(cached.written, revision)
            if cached.announced is not stored.job.state:
                cached.announced = stored.job.state
                self._events.changed(cached.name, cached.uid, stored)

    async def _look_again(self, cached: CachedJob, revision: int) -> None:
        try:
            found: _Found = await self._connection.get(
                JOBS, cached.name, namespace=self._namespace, as_=_Found
            )
        except KubeNotFound:
            cached.gone = True
            return
        if found.metadata.uid != cached.uid:
            cached.gone = True
            return
        stamp = found.status
        if stamp.epoch > self._epoch:
            raise NotLeading(
                f"Job {cached.name} was written by leader {stamp.epoch}; this replica is no "
                f"longer leader {self._epoch} and exits."
            )
        cached.version = found.metadata.resource_version or ""
        if cached.asked:
            now = msgspec.json.decode(found.spec, type=SpecRequests)
            # A value that another client wrote meanwhile is newer; the watch reports it.
            cached.asked = tuple(
                name
                for name in cached.asked
                if getattr(now, name) == getattr(cached.requests, name)
            )
        if cached.edited or (found.metadata.generation or 0) != cached.generation:
            await self._put_back(cached, found)
        if (stamp.epoch, stamp.revision) == (self._epoch, revision):
            cached.written = max(cached.written, revision)
        elif stamp.revision > cached.written:
            log.warning("job %s was written by leader %s; written again", cached.name, stamp.epoch)

    async def _put_back(self, cached: CachedJob, found: _Found) -> None:
        about, fields = found.metadata, edits.changed(cached.spec, bytes(found.spec))
        cached.edited = bool(fields)
        if fields:
            try:
                about = await edits.put_back(
                    self._connection, self._namespace, cached.name, cached.spec, cached.version
                )
            except (KubeNotFound, KubeConflict):
                return  # read again by the next try
            except (KubeInvalid, KubeForbidden) as failed:
                log.error("the edit of job %s cannot be reverted: %s", cached.name, failed.text)
            else:
                cached.refused = edits.refused(fields)
                log.warning("job %s: %s", cached.name, cached.refused.text)
            cached.edited = False
        cached.version = about.resource_version or ""
        cached.generation = max(cached.generation, about.generation or 0)

    async def create(self, cached: CachedJob, body: dict[str, Any]) -> None:
        """Create the object of a new job. Errors: InvalidInput when the API server refuses it."""

        async def once() -> None:
            try:
                made: _Written = await self._connection.create(
                    JOBS, body, namespace=self._namespace, as_=_Written
                )
            except KubeAlreadyExists:  # the name is a random ID: an earlier try has created it
                made = await self._connection.get(
                    JOBS, cached.name, namespace=self._namespace, as_=_Written
                )
            except (KubeInvalid, KubeForbidden) as refused:
                raise InvalidInput(
                    f"The API server rejects the job: {refused.text}", code="not-taken"
                ) from refused
            cached.uid = made.metadata.uid or ""
            cached.version = made.metadata.resource_version or ""
            cached.generation = made.metadata.generation or 0

        await self._calls.until_done(once)

    async def delete(self, kind: Kind, name: str, uid: str | None = None) -> None:
        """Delete an object; a missing object, or another one of the same name, is no error."""

        async def once() -> None:
            try:
                await self._connection.delete(
                    kind,
                    name,
                    namespace=self._namespace,
                    precondition=Precondition(uid=uid) if uid else None,
                )
            except (KubeNotFound, KubeConflict):
                return

        await self._calls.until_done(once)

    # ------------------------------------------------------------------ deferred writes

    def later(self, cached: CachedJob, priority: WritePriority) -> None:
        """Queue a job to be written at this priority."""
        pending = self._pending[priority]
        pending.jobs[cached.stored.job.id] = cached
        pending.some.set()

    async def write_later(self, priority: WritePriority) -> None:
        """Write pending jobs of this priority forever. Errors: NotLeading."""
        pending = self._pending[priority]
        while True:
            await pending.some.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LATEST_S):
                    await self._calm.wait()
            taken, begun = pending.take(priority.at_once), time.monotonic()
            try:
                await for_all(self._once, [cached for cached in taken if cached.behind])
            finally:  # also when the store is closed meanwhile
                for cached in taken:
                    if cached.behind:
                        self.later(cached, priority)
            await asyncio.sleep(priority.rest * (time.monotonic() - begun))

    async def finish(self) -> None:
        """Write all pending jobs now."""
        left = [cached for pending in self._pending.values() for cached in pending.take(None)]
        await for_all(self.settle, [cached for cached in left if cached.behind])

    async def close(self) -> None:
        """Cancel the writes in progress; the next leader reads the state from the API server."""
        left = list(self._under_way.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
