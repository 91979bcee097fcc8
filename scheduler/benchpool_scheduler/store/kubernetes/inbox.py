"""Jobs that others write and nobody has accepted yet: told to the service, taken up or refused."""

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
    """What others wrote, in order, and the jobs among it that wait for an answer.

    Attributes:
        offers: Jobs that nobody has accepted or refused as they are now, by id.
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

    def tell(self, news: Iterable[Written]) -> None:
        """Add what was written."""
        for one in news:
            self._news.put_nowait(one)

    def take_asked(self, job: str) -> OfferedJob | None:
        """Return the offer that the service was asked about and now accepts; None for none."""
        offer = self._asked.pop(job, None)
        if offer is not None:
            self.offers.pop(job, None)
        return offer

    async def written(self) -> AsyncIterator[Written]:
        """Yield what others wrote, from what was there at ``open`` on."""
        while True:
            one = await self._news.get()
            if not isinstance(one, JobWritten):
                yield one
                continue
            offer = self.offers.get(one.id)
            if offer is None:
                continue  # answered, or gone again
            self._asked[one.id] = offer
            if (filled := await self._fill(offer)) is not None:
                yield filled

    async def _fill(self, offer: OfferedJob) -> JobWritten | None:
        """Return an offer as it is told; None when it was refused because it is not complete."""
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
        """Say at the object why a job was not accepted. Errors: NotLeading."""
        offer = self._asked.pop(job, None)
        if offer is None or self.offers.get(job) is not offer:
            return  # it was edited meanwhile, and is told again

        async def once() -> None:
            about = ObjectMeta(offer.name, resource_version=offer.version)
            status = refusal(reason, offer.created, offer.generation)
            body = envelope(JOBS, about, spec=msgspec.Raw(offer.spec), status=status)
            # One that is gone needs no answer; one that was edited is told again.
            with contextlib.suppress(KubeNotFound, KubeConflict):
                await self._connection.replace(
                    JOBS, offer.name, body, namespace=self._namespace, subresource="status"
                )
                self._events.refused(offer.name, offer.uid, reason)

        await self._calls.until_done(once)
        if self.offers.get(job) is offer:
            del self.offers[job]
