"""The store port on custom resources: ``TrainingJob``, ``BuildLease`` and ``Project.status``.

Each job is one object; a commit writes every object that it touches once, side by side, and returns
when the API server has them all. What the runtime tells again after a restart, that workers run, is
written later, at a pace. Nothing is held in files here: a leader that takes over rebuilds all of it
from one list.

A commit that has begun is finished or the process ends: while the API server is away, it waits and
says so. A leader that finds itself replaced writes nothing more (``NotLeading``).
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
from benchpool_scheduler.kube import (
    Conflict,
    Connection,
    NotFound,
    NotLeading,
    Reflector,
)
from benchpool_scheduler.resources.declaring import ObjectMeta, envelope
from benchpool_scheduler.resources.jobs import TrainingJobSpec
from benchpool_scheduler.resources.submissions import (
    INLINE,
    as_spec,
    as_submission,
)
from benchpool_scheduler.store.inbound import JobGone, JobWritten, LeaseGone, Written
from benchpool_scheduler.store.kubernetes import hearing, inbound, leases, use
from benchpool_scheduler.store.kubernetes.edits import EditRefused
from benchpool_scheduler.store.kubernetes.holding import Held, Holding, Touched
from benchpool_scheduler.store.kubernetes.inbound import NO_BUNDLE, NO_USER, Offer, Read, Seen
from benchpool_scheduler.store.kubernetes.lanes import AT_LEISURE, SOON
from benchpool_scheduler.store.kubernetes.objects import FsspecObjects
from benchpool_scheduler.store.kubernetes.translation import (
    Told,
    is_news,
    is_plain,
    metadata_of,
    refusal,
    told_in,
    told_of,
)
from benchpool_scheduler.store.kubernetes.uploads import Uploads
from benchpool_scheduler.store.kubernetes.writing import JOBS, Writer
from benchpool_scheduler.store.records import AddJob, Change, Contents, LeaseRecord, Note

log = logging.getLogger(__name__)

END_S = 5.0


class KubernetesStore:
    """The facts of one pool in one namespace. Also an ``Inbound``.

    Args:
        connection: Its guard, if there is one, must end the writes of who is not the leader.
        namespace: Where jobs and leases are.
        objects: Where uploaded contents are.
        epoch: Of this leader; 0 where there is one replica and no election.
        report: Takes a sentence while nothing can be written, None when all is well again.
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
        self._holding = Holding()
        self._writer = Writer(connection, namespace, epoch, report)
        self._reflector: Reflector[Seen] = Reflector(
            connection, JOBS, namespace=namespace, as_=Read, keep=self._keep
        )
        self._leases: Reflector[LeaseRecord] = leases.reflector(connection, namespace)
        self._opening: list[Read] | None = []
        self._offers: dict[str, Offer] = {}
        self._asked: dict[str, Offer] = {}
        self._inbox: asyncio.Queue[Written] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    # ------------------------------------------------------------------ life

    async def open(self) -> Contents:
        """Read everything. Errors: Unavailable when the API server or the objects are away."""
        await self._uploads.load()
        changes, of_leases = self._reflector.changes(), self._leases.changes()
        await hearing.all_of("jobs", changes, self._namespace)
        await hearing.all_of("build leases", of_leases, self._namespace)
        found, self._opening = self._opening or [], None
        for read in sorted(found, key=lambda it: (it.created, it.metadata.name)):
            self._restore(read)
        for lease in sorted(self._leases.items.values(), key=lambda it: (it.since, it.id)):
            self._holding.put_lease(lease)
        contents = self._holding.contents(await use.read(self._connection))
        self._tasks = [
            self._begin(hearing.listen(self._reflector, changes, self._take_in)),
            self._begin(hearing.listen(self._leases, of_leases, self._take_in_lease)),
            *(self._begin(self._writer.write_later(lane)) for lane in (SOON, AT_LEISURE)),
            self._begin(self._uploads.read_lists()),
        ]
        return contents

    def _restore(self, read: Read) -> None:
        """Take a job as it was found: an accepted one is held, others are told to the service."""
        it = inbound.seen(read)
        if it is None:
            return
        if not read.accepted:
            self._tell(inbound.hear(it, None, self._offers))
            return
        spec = msgspec.json.decode(read.spec, type=TrainingJobSpec)
        held = inbound.found(read, it, spec)
        held.told = told_in(read.status)
        self._holding.put(held)
        self._uploads.found(spec)
        self._hear(it, held)

    async def close(self) -> None:
        """Write what is left and let go."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(TimeoutError, BenchpoolError):
            async with asyncio.timeout(END_S):
                await self._writer.finish()
        await self._writer.close()

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        failed = None if task.cancelled() else task.exception()
        if isinstance(failed, NotLeading):
            self._lost(failed)
        elif failed is not None:
            log.error("a part of the store ended", exc_info=failed)

    # ------------------------------------------------------------------ commits

    async def commit(
        self, *changes: Change, as_written: Callable[[str], None] | None = None
    ) -> None:
        """Make all changes; they are in the API server when this returns.

        Errors: Conflict, and nothing has changed; InvalidInput for a job that the API server
        refuses; Unavailable when contents cannot be kept; NotLeading.
        """
        self._holding.check(changes)
        # Who waits may go away; what has begun is finished.
        await asyncio.shield(asyncio.ensure_future(self._commit(changes, as_written)))

    async def _commit(
        self, changes: tuple[Change, ...], as_written: Callable[[str], None] | None
    ) -> None:
        touched = self._holding.apply(changes)
        try:
            await self._write(touched, as_written)
        except NotLeading as failed:
            self._lost(failed)
            raise

    async def _write(
        self, touched: Touched, as_written: Callable[[str], None] | None = None
    ) -> None:
        jobs, writer = self._holding.jobs, self._writer

        async def settle(held: Held) -> None:
            await writer.settle(held)
            if as_written is not None:
                as_written(held.image.job.id)

        for upload in touched.uploads:
            await self._uploads.keep(upload)
        for change in touched.added.values():
            await self._add(change)
        for id_ in touched.later:
            writer.later(jobs[id_], SOON)
        for id_ in touched.returned:
            await writer.delete(leases.LEASES, id_)
        freeing = [it for it in map(jobs.get, touched.jobs) if it and not _holds(it)]
        taking = [it for it in map(jobs.get, touched.jobs) if it and _holds(it)]
        for group in (freeing, taking):
            await writer.all(settle, group)
        for lease in touched.leases:
            await writer.patiently(partial(leases.write, self._connection, self._namespace, lease))
        for held in touched.dropped:
            self._uploads.unname(held.spec_now)
            if not held.gone:
                await writer.delete(JOBS, held.name, held.uid)
        if touched.use is not None:
            await writer.patiently(partial(use.write, self._connection, touched.use, self._epoch))

    async def _add(self, change: AddJob) -> None:
        job = change.job
        held = self._holding.jobs[job.id]
        offer = self._asked.pop(job.id, None)
        if offer is not None:
            self._take_up(held, offer)
        else:
            try:
                await self._make(held, change)
            except BaseException:
                self._holding.forget_added(job.id)
                raise
        self._uploads.name(held.spec_now, change.objects)
        if offer is None and not is_plain(held.image):
            await self._writer.settle(held)
        else:
            # That it was accepted is known by the annotation, or is found again in the same way.
            self._writer.later(held, AT_LEISURE)

    def _take_up(self, held: Held, offer: Offer) -> None:
        """Hold a job as it was told; what was written meanwhile is heard as if it came now."""
        self._offers.pop(offer.id, None)
        held.name, held.uid, held.version = offer.name, offer.uid, offer.version
        held.generation, held.spec, held.suspend = offer.generation, offer.spec, offer.suspend
        held.workers, held.priority = offer.workers, offer.priority
        now = self._reflector.items.get((self._namespace, offer.name))
        if now is None or now.uid != offer.uid:
            held.gone = True
            self._tell([JobGone(offer.id)])
        elif now.generation > offer.generation:
            self._hear(now, held)

    async def _make(self, held: Held, change: AddJob) -> None:
        job = change.job
        submission = msgspec.json.decode(change.submission, type=JobSubmission)
        bundle = None
        if len(submission.files) > INLINE:
            bundle = await self._uploads.bundle(submission.files)
        spec = as_spec(submission, job.user, job.name, job.project, bundle)
        held.spec, held.workers = msgspec.json.encode(spec), spec.workers
        held.priority = spec.priority
        about = metadata_of(job)
        await self._writer.create(held, envelope(JOBS, about, spec=msgspec.Raw(held.spec)))

    # ------------------------------------------------------------------ reading

    def submission(self, job: str) -> bytes | None:
        """Return the submission of a job as JSON, None when there is no such job.

        The list of many files is read from the objects.
        """
        held = self._holding.jobs.get(job)
        if held is None:
            return None
        spec = held.spec_now
        files = self._uploads.files_now(spec.bundle) if spec.bundle else ()
        submission = as_submission(spec, files)
        job_now = held.image.job
        return msgspec.json.encode(
            msgspec.structs.replace(submission, name=job_now.name, project=job_now.project)
        )

    def objects_of(self, user: str, hashes: Iterable[str]) -> frozenset[str]:
        """Return those hashes that the user has uploaded."""
        return self._uploads.of(user, hashes)

    def unused_objects(self, before: float) -> tuple[str, ...]:
        """Return objects that no job names and nobody has uploaded since ``before``."""
        return self._uploads.unused(before)

    async def forget_objects(self, hashes: Iterable[str]) -> None:
        """Remove these objects from the list."""
        await self._uploads.forget(hashes)

    def size(self) -> int:
        """Return the bytes of all specs; statuses are about as large."""
        return sum(len(held.spec) for held in self._holding.jobs.values())

    # ------------------------------------------------------------------ telling

    def tell(self, told: Mapping[str, Told]) -> None:
        """Let waiting jobs say why they wait and when they may start; written later."""
        for id_, it in told.items():
            held = self._holding.jobs.get(id_)
            if held is not None and it != held.told:
                news = is_news(held.told, it)
                held.told = it
                if news:
                    held.revision += 1
                    self._writer.later(held, AT_LEISURE)

    def announce(self, jobs: Sequence[Job]) -> None:
        """Let these jobs, as people see them, say why they wait; written later."""
        self.tell({job.id: told_of(job) for job in jobs})

    # ------------------------------------------------------------------ what others write

    async def written(self) -> AsyncIterator[Written]:
        """Yield what others wrote, from what was there at ``open`` on."""
        while True:
            one = await self._inbox.get()
            if not isinstance(one, JobWritten):
                yield one
                continue
            offer = self._offers.get(one.id)
            if offer is None:
                continue  # answered, or gone again
            self._asked[one.id] = offer
            if (filled := await self._fill(offer)) is not None:
                yield filled

    async def _fill(self, offer: Offer) -> JobWritten | None:
        """Return an offer as it is told; None when it was refused because it is not complete."""
        spec = msgspec.json.decode(offer.spec, type=TrainingJobSpec)
        if not spec.user:
            await self.refuse(offer.id, NO_USER)
            return None
        if not spec.bundle:
            return inbound.written(offer)
        try:
            if not self.objects_of(spec.user, [spec.bundle]):
                raise FileNotFoundError
            files = await self._uploads.files(spec.bundle)
        except (FileNotFoundError, msgspec.DecodeError):
            await self.refuse(offer.id, NO_BUNDLE)
            return None
        return inbound.written(offer, files)

    async def refuse(self, job: str, reason: Note) -> None:
        """Say at the object why a job was not accepted. Errors: NotLeading."""
        offer = self._asked.pop(job, None)
        if offer is None or self._offers.get(job) is not offer:
            return  # it was edited meanwhile, and is told again

        async def once() -> None:
            about = ObjectMeta(offer.name, resource_version=offer.version)
            status = refusal(reason, offer.created, offer.generation)
            body = envelope(JOBS, about, spec=msgspec.Raw(offer.spec), status=status)
            # One that is gone needs no answer; one that was edited is told again.
            with contextlib.suppress(NotFound, Conflict):
                await self._connection.replace(
                    JOBS, offer.name, body, namespace=self._namespace, subresource="status"
                )

        await self._writer.patiently(once)
        if self._offers.get(job) is offer:
            del self._offers[job]

    def put_back(self, job: str, why: str) -> None:
        """Let the object ask for the workers that the job has, and say why."""
        held = self._holding.jobs.get(job)
        if held is None or held.gone:
            return
        held.asked, held.refused = ("workers",), EditRefused(why, time.time())
        held.revision += 1
        self._writer.later(held, SOON)

    async def restore(self, lease: str) -> None:
        """Make the object of a lease again, which somebody deleted. Errors: NotLeading."""
        held = self._holding.leases.get(lease)
        if held is None:
            return
        make = partial(leases.write, self._connection, self._namespace, held)
        await self._writer.patiently(make)
        if lease not in self._holding.leases:  # it was given back meanwhile
            await self._writer.delete(leases.LEASES, lease)

    def _keep(self, read: Read) -> Seen | None:
        if self._opening is not None:
            # Pages come in large buffers; what is kept must not keep them.
            spec = msgspec.Raw(bytes(read.spec))
            self._opening.append(msgspec.structs.replace(read, spec=spec))
        return inbound.seen(read, self._holding.jobs.get(read.id))

    def _take_in_lease(self, lease: LeaseRecord, gone: bool) -> None:
        # What is given back is not held any more before its object is deleted.
        if gone and lease.id in self._holding.leases:
            self._tell([LeaseGone(lease.id)])

    def _take_in(self, it: Seen, gone: bool) -> None:
        held = self._holding.jobs.get(it.id)
        if gone:
            self._tell(inbound.forget(it, held, self._offers))
        elif it.epoch > self._epoch:
            raise NotLeading(
                f"Leader {it.epoch} has written a job; this is leader {self._epoch} no more."
            )
        else:
            self._hear(it, held)

    def _hear(self, it: Seen, held: Held | None) -> None:
        news = list(inbound.hear(it, held, self._offers))
        self._tell(news)
        if held is None or held.uid != it.uid:
            return
        late = it.epoch < self._epoch and it.revision > held.written
        if late:  # the last word of a leader that is no more; ours is what holds
            log.warning("job %s was written by the former leader %d", it.name, it.epoch)
            held.revision = max(held.revision, it.revision) + 1
        if late or news or held.edited:
            self._writer.later(held, SOON)

    def _tell(self, news: Iterable[Written]) -> None:
        for one in news:
            self._inbox.put_nowait(one)


def _holds(held: Held) -> bool:
    newest = held.image.newest
    return newest is not None and bool(newest.live_workers)
