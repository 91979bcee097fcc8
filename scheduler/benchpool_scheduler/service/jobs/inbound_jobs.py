"""Reader of changes made in the store from outside, e.g. by ``kubectl apply``.

A job written there passes the same checks as a submitted one, and errors are reported at the
object. A job whose object was deleted ends, and none of its data is kept. A build lease whose
object was deleted is released, unless its server still runs: then the object is created again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import msgspec

from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.contract.actions import ActionReason
from benchpool_scheduler.errors import BenchpoolError, InvalidInput, Unavailable
from benchpool_scheduler.runtime import Runtime
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.benches.reservations import Leases
from benchpool_scheduler.service.execution import dependencies
from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.jobs.commands import Commands
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.lifecycle import notices
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.inbound import (
    FieldWritten,
    Inbound,
    JobGone,
    JobWritten,
    LeaseGone,
    SuspendWritten,
    Written,
)
from benchpool_scheduler.store.records import DropJob, Note

log = logging.getLogger(__name__)

RETRY_S = 1.0
OBJECT_WRITER = Caller("kubectl", kind="service")
"""Caller for writes to objects; the API server has authorised the writer and does not name it."""

DELETED = ActionReason("its object was deleted")


class InboundJobs:
    """Reader of a store's ``Inbound`` side; it does nothing if the store has none."""

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        runtime: Runtime,
        admission: Admission,
        commands: Commands,
        leases: Leases,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._runtime = runtime
        self._admission = admission
        self._commands = commands
        self._leases = leases
        self._gone: set[str] = set()
        self._ended: asyncio.Queue[str] = asyncio.Queue()

    async def run(self) -> None:
        """Read written changes until cancelled."""
        store = self._ledger.store
        if not isinstance(store, Inbound):
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._forget_ended())
            async for one in store.written():
                await self._take_until_done(store, one)

    def see(self, jobs: Iterable[str]) -> None:
        """Forget the jobs with a deleted object that have now ended."""
        for job in self._gone.intersection(jobs):
            record = self._ledger.job(job)
            if record is None or not record.live:
                self._gone.discard(job)
                self._ended.put_nowait(job)

    async def _take_until_done(self, store: Inbound, one: Written) -> None:
        while True:
            try:
                await self._take(store, one)
            except Unavailable as error:
                self._observed.report("inbound", str(error))
                await asyncio.sleep(RETRY_S)
            except BenchpoolError as error:
                log.info("a change of job %s has no effect: %s", one.id, error.message)
                return
            except Exception:
                log.exception("a change of job %s could not be processed", one.id)
                return
            else:
                self._observed.report("inbound", None)
                return

    async def _take(self, store: Inbound, one: Written) -> None:
        known_job = self._ledger.job(one.id) is not None
        match one:
            case LeaseGone(id=lease):
                await self._take_back(store, lease)
            case JobWritten():
                await self._accept(store, one)
            case _ if not known_job:
                return
            case SuspendWritten(id=job, suspend=True):
                await self._commands.pause(OBJECT_WRITER, job, ActionReason())
            case SuspendWritten(id=job):
                await self._commands.resume(OBJECT_WRITER, job, ActionReason())
            case FieldWritten():
                await self._take_field(store, one)
            case JobGone(id=job):
                await self._end(job)

    async def _take_field(self, store: Inbound, one: FieldWritten) -> None:
        try:
            await self._commands.take_field(OBJECT_WRITER, one.id, one.field, one.value)
        except Unavailable:
            raise
        except BenchpoolError as error:
            log.info("%s of job %s is unchanged: %s", one.field, one.id, error.message)
            store.put_back(one.id, one.field, error.message)

    async def _accept(self, store: Inbound, one: JobWritten) -> None:
        try:
            submission = msgspec.json.decode(one.submission, type=JobSubmission)
            if not one.user:
                raise InvalidInput(
                    "spec.user is missing: a job runs in the name of a user. Set it and apply "
                    "again.",
                    code="no-user",
                    field="user",
                )
            paused = notices.SUSPENDED if one.suspended else None
            await self._admission.take_in(self._caller(one.user), submission, one.id, paused=paused)
        except Unavailable:
            raise
        except msgspec.ValidationError as error:
            text = f"The job cannot be read: {error}. Correct it and apply it again."
            await store.refuse(one.id, Note("invalid-input", text))
        except BenchpoolError as error:
            log.info("job %s is refused: %s", one.id, error.message)
            await store.refuse(one.id, Note(error.code, error.message, numbers=error.numbers))

    async def _take_back(self, store: Inbound, lease: str) -> None:
        if await self._leases.is_used(lease):
            log.warning(
                "the object of lease %s was deleted while its server runs; it is restored",
                lease,
            )
            await store.restore(lease)
        else:
            log.info("lease %s is released: its object was deleted", lease)
            await self._leases.release(lease)

    def _caller(self, user: str) -> Caller:
        """Return the user without administrator rights, which writing objects does not grant."""
        known = self._observed.now.hub_user(user)
        return Caller(user, groups=frozenset(() if known is None else known.groups))

    async def _end(self, job: str) -> None:
        record = self._ledger.job(job)
        if record is None:
            return
        self._gone.add(job)
        if record.live:
            await self._commands.cancel(OBJECT_WRITER, job, DELETED)
        self.see([job])

    async def _forget_ended(self) -> None:
        while True:
            job = await self._ended.get()
            try:
                await self._runtime.forget(job)
                async with self._ledger.lock:
                    await dependencies.settle(self._ledger, self._observed.settings.clock.now())
                    if self._ledger.job(job) is not None:
                        await self._ledger.commit(DropJob(job))
            except Unavailable as error:
                self._observed.report("inbound", str(error))
                await asyncio.sleep(RETRY_S)
                self._ended.put_nowait(job)
            except Exception:
                log.exception("job %s could not be removed", job)
