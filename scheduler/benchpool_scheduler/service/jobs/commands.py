"""Commands on existing jobs: pause, resume, cancel, change, rename, note."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec.structs import asdict, replace

from benchpool_scheduler.contract.actions import ActionReason, JobNote, JobRename
from benchpool_scheduler.contract.changes import CHANGEABLE, WAITING, WRITTEN, JobChange
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.execution.actions import Actions
from benchpool_scheduler.service.jobs import submission_checks
from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.unit_of_work import UnitOfWork
from benchpool_scheduler.service.lifecycle import notices, transitions
from benchpool_scheduler.service.observed.observed import SchedulerState


class Commands:
    """Commands on jobs; each is saved before it takes effect, and is idempotent."""

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        actions: Actions,
        admission: Admission,
        want_pass: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._admission = admission
        self._observed = observed
        self._actions = actions
        self._want_pass = want_pass

    async def act(self, caller: Caller, job: str, action: str, body: Any) -> None:
        """Carry out an action of the API's table, with its body. Errors: those of the action."""
        await ACTIONS[action](self, caller, job, body)

    async def pause(self, caller: Caller, job: str, asked: ActionReason) -> None:
        """Pause a job until it is resumed.

        A pause by an administrator on another user's job is a hold. Errors: Refused, Unavailable.
        """
        record = self._ledger.job(job)
        held = record is not None and record.user != caller.name and rights.may_lift(caller)
        stop = notices.paused(caller.name, asked.reason, self._grace_s, self._now, held=held)
        reason = notices.reason_given(asked.reason)
        await self._do(lambda work: transitions.pause(work, job, stop, reason))

    async def resume(self, caller: Caller, job: str, asked: ActionReason) -> None:
        """Queue a paused job again. Errors: Refused, Unavailable."""
        stop = notices.resumed(caller.name, asked.reason, self._grace_s, self._now)
        lifts = rights.may_lift(caller)
        await self._do(lambda work: transitions.resume(work, job, stop, stop.at, lifts=lifts))

    async def cancel(self, caller: Caller, job: str, asked: ActionReason) -> None:
        """End a job permanently. Errors: Refused, Unavailable."""
        stop = notices.cancelled(caller.name, asked.reason, self._grace_s, self._now)
        await self._do(lambda work: transitions.cancel(work, job, stop, stop.at))

    async def stop_early(self, job: str, text: str) -> None:
        """End a trial that its sweep no longer needs. Errors: Refused, Unavailable."""
        stop = notices.stopped_early(text, self._grace_s, self._now)
        await self._do(lambda work: transitions.cancel(work, job, stop, stop.at))

    async def let_go(self, job: str, text: str, for_: str = "its service") -> None:
        """End a job that its creator no longer needs. Errors: Refused, Unavailable."""
        stop = notices.stopped_early(text, self._grace_s, self._now, for_)
        await self._do(lambda work: transitions.cancel(work, job, stop, stop.at))

    async def change(self, caller: Caller, job: str, asked: JobChange) -> None:
        """Change the given fields, all or none; a field that is None stays unchanged.

        Errors: InvalidInput if no field is given or the job could never run so; Refused if a
        running job cannot change the field; Forbidden for a project without access; Unavailable.
        """
        wanted = {name: value for name, value in asdict(asked).items() if value is not None}
        if not wanted:
            *most, last = (row.noun for row in CHANGEABLE)
            raise InvalidInput(f"Name what to change: {', '.join(most)} or {last}.", field="body")
        workers, priority = asked.workers, asked.priority
        record = self._ledger.job(job)
        if record is not None:
            self._admission.check_change(caller, record, wanted)

        def command(work: UnitOfWork) -> None:
            if workers is not None:
                fewer = notices.scaled(caller.name, workers, self._grace_s, self._now)
                transitions.scale(work, job, workers, fewer)
            if priority is not None:
                transitions.prioritise(work, job, priority)
            transitions.reshape(work, job, {it: wanted[it] for it in WAITING if it in wanted})
            work.save_asked(job, *(name for name in wanted if name in WRITTEN))

        await self._do(command)

    async def rename(self, caller: Caller, job: str, asked: JobRename) -> None:
        """Rename a job, even after its end. Errors: Unavailable."""

        def command(work: UnitOfWork) -> None:
            self._name(work, job, asked.name)
            work.save_asked(job, "name")

        await self._do(command)

    async def note(self, caller: Caller, job: str, asked: JobNote) -> None:
        """Set or clear the note of a job, even after its end. Errors: Unavailable."""
        text = " ".join(asked.note.split())

        def command(work: UnitOfWork) -> None:
            record = work.job(job)
            if record.remark != text:
                work.save_job(replace(record, remark=text))

        await self._do(command)

    async def take_name(self, caller: Caller, job: str, name: str | None) -> None:
        """Apply the name written in the job's object. Errors: InvalidInput if there is none."""
        if name is None:
            raise InvalidInput("A job's name cannot be removed. Give another name.", field="name")
        await self._do(lambda work: self._name(work, job, name))

    @staticmethod
    def _name(work: UnitOfWork, job: str, name: str) -> None:
        record = work.job(job)
        submission_checks.check_visible(name, "name")
        if record.name != name:
            work.save_job(replace(record, name=name))

    async def take_field(self, caller: Caller, job: str, field: str, value: Any) -> None:
        """Apply a field that was written in the store from outside.

        Errors: those of the field's command.
        """
        if field in TAKEN:
            await TAKEN[field](self, caller, job, value)
        else:
            await self._reshape(caller, job, {field: value})

    async def scale(self, caller: Caller, job: str, workers: int) -> None:
        """Change the number of workers.

        Errors: InvalidInput, Refused, Unavailable.
        """
        record = self._ledger.job(job)
        if record is None or record.spec.workers == workers:
            return
        self._admission.check_change(caller, record, {"workers": workers})
        stop = notices.scaled(caller.name, workers, self._grace_s, self._now)
        await self._do(lambda work: transitions.scale(work, job, workers, stop))

    async def prioritise(self, caller: Caller, job: str, priority: int) -> None:
        """Change the priority. Errors: Refused, Unavailable."""
        await self._do(lambda work: transitions.prioritise(work, job, priority))

    async def _reshape(self, caller: Caller, job: str, wanted: Mapping[str, Any]) -> None:
        record = self._ledger.job(job)
        if record is None or all(getattr(record.spec, it) == wanted[it] for it in wanted):
            return
        self._admission.check_change(caller, record, wanted)
        await self._do(lambda work: transitions.reshape(work, job, wanted))

    async def _do(self, command: Callable[[UnitOfWork], None]) -> None:
        async with self._ledger.lock:
            work = UnitOfWork(self._ledger)
            command(work)
            await self._ledger.commit(*work.changes())
            self._actions.carry_out(work)
        self._want_pass()

    @property
    def _grace_s(self) -> float:
        return self._observed.now.configuration.policy.grace_s

    @property
    def _now(self) -> float:
        return self._observed.settings.clock.now()


Command = Callable[[Commands, Caller, str, Any], Awaitable[None]]

ACTIONS: Mapping[str, Command] = {
    "pause": Commands.pause,
    "resume": Commands.resume,
    "cancel": Commands.cancel,
    "change": Commands.change,
    "rename": Commands.rename,
    "note": Commands.note,
}
"""Commands for ``contract.actions.JobActions``, by name."""

TAKEN: Mapping[str, Command] = {
    "workers": Commands.scale,
    "priority": Commands.prioritise,
    "name": Commands.take_name,
}
"""Commands for fields written in the store from outside (``store.inbound``). Fields that can change
only while a job waits share one command.
"""
