"""Queue of jobs that clients created as objects: reported to the service, accepted or refused."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable

import msgspec

from benchpool_scheduler.kube import Connection, KubeConflict, KubeNotFound
from benchpool_scheduler.resources.declaring import ObjectMeta, envelope
from benchpool_scheduler.resources.jobs import TrainingJobSpec
from benchpool_scheduler.store.inbound import JobWritten, Written
from benchpool_scheduler.store.kubernetes import inbound_jobs
from benchpool_scheduler.store.kubernetes.encoding import refusal
from benchpool_scheduler.store.kubernetes.inbound_jobs import (
    NO_BUNDLE,
    NO_USER,
    NOT_BY_HAND,
    OfferedJob,
)
from benchpool_scheduler.store.kubernetes.job_events import JobEvents
from benchpool_scheduler.store.kubernetes.patient_calls import PatientCalls
from benchpool_scheduler.store.kubernetes.resource_writer import JOBS
from benchpool_scheduler.store.kubernetes.uploads import Uploads
from benchpool_scheduler.store.records import Note


class Inbox:
    """Queue of external changes, and the offered jobs among them.

    Attributes:
        offers: Jobs that are neither accepted nor refused in their current form, by ID.
    """

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        uploads: Uploads,
        calls: PatientCalls,
        events: JobEvents,
    ) -> None:
        self._connection = connection
        self._events = events
        self._namespace = namespace
        self._uploads = uploads
        self._calls = calls
        self.offers: dict[str, OfferedJob] = {}
        self._asked: dict[str, OfferedJob] = {}
        self._news: asyncio.Queue[Written] = asyncio.Queue()

    def put(self, news: Iterable[Written]) -> None:
        """Queue changes for the service."""
        for one in news:
            self._news.put_nowait(one)

    def take_asked(self, job: str) -> OfferedJob | None:
        """Return and remove the offer of a job that the service accepts, or None."""
        offer = self._asked.pop(job, None)
        if offer is not None:
            self.offers.pop(job, None)
        return offer

    async def written(self) -> AsyncIterator[Written]:
        """Yield external changes in order, beginning with those found at ``open``."""
        while True:
            one = await self._news.get()
            if not isinstance(one, JobWritten):
                yield one
                continue
            offer = self.offers.get(one.id)
            if offer is None:
                continue  # answered or deleted meanwhile
            self._asked[one.id] = offer
            if (filled := await self._fill(offer)) is not None:
                yield filled

    async def _fill(self, offer: OfferedJob) -> JobWritten | None:
        """Return the event of an offer; None when the offer is incomplete and was refused."""
        spec = msgspec.json.decode(offer.spec, type=TrainingJobSpec)
        if not spec.user:
            await self.refuse(offer.id, NO_USER)
            return None
        if spec.environment:
            await self.refuse(offer.id, NOT_BY_HAND)
            return None
        if not spec.bundle:
            return inbound_jobs.written(offer)
        try:
            if not self._uploads.of(spec.user, [spec.bundle]):
                raise FileNotFoundError
            files = await self._uploads.files(spec.bundle)
        except (FileNotFoundError, msgspec.DecodeError):
            await self.refuse(offer.id, NO_BUNDLE)
            return None
        return inbound_jobs.written(offer, files)

    async def refuse(self, job: str, reason: Note) -> None:
        """Write to the object why its job was not accepted. Errors: NotLeading."""
        offer = self._asked.pop(job, None)
        if offer is None or self.offers.get(job) is not offer:
            return  # edited meanwhile, and reported again

        async def once() -> None:
            about = ObjectMeta(offer.name, resource_version=offer.version)
            status = refusal(reason, offer.created, offer.generation)
            body = envelope(JOBS, about, spec=msgspec.Raw(offer.spec), status=status)
            # A deleted object needs no answer; an edited one is reported again.
            with contextlib.suppress(KubeNotFound, KubeConflict):
                await self._connection.replace(
                    JOBS, offer.name, body, namespace=self._namespace, subresource="status"
                )
                self._events.refused(offer.name, offer.uid, reason)

        await self._calls.until_done(once)
        if self.offers.get(job) is offer:
            del self.offers[job]
