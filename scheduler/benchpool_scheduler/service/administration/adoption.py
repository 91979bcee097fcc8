"""Recovery of running jobs that the database does not contain: list, adopt or end them.

Such jobs exist after a database was lost, damaged, or restored from an older copy. They are never
ended automatically. Their GPUs stay out of the pool until an administrator decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace as with_fields
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from benchpool_scheduler import contract
from benchpool_scheduler.contract import CommandEntry, JobSubmission, NotebookEntry
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.errors import InvalidInput, NotFound, Refused
from benchpool_scheduler.phrases import count
from benchpool_scheduler.runtime import Runtime, UnexpectedWorker, UnexpectedWorkers, WorkerId
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.benches.reservations import Leases
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.lifecycle import notices, origin
from benchpool_scheduler.service.lifecycle.origin import StartNote
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.observed.safe_mode import SafeMode, UnknownJob
from benchpool_scheduler.service.process.shielded import shielded
from benchpool_scheduler.store import Conflict, Held, hold, hub_database
from benchpool_scheduler.store.records import (
    AddJob,
    AttemptRecord,
    Change,
    DropJob,
    DropLease,
    JobRecord,
    SaveAttempt,
    SaveJob,
    Unreadable,
    WorkerRecord,
)

NAMED = ("JOB_NAME", "PROJECT", "USER")
NODE_OF_A_GUESS = "localhost"
ADVICE = (
    "The page Health has buttons for them; in a terminal, `benchpool adopt` lists them, "
    "`benchpool adopt ID` adopts one, `--end` ends it."
)


class OrphanRecovery:
    """Unknown jobs and unreadable records, and the administrator's decisions about them.

    Args:
        want_pass: Called after a decision.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        runtime: Runtime,
        leases: Leases,
        want_pass: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._runtime = runtime
        self._leases = leases
        self._want_pass = want_pass
        self._origins: dict[WorkerId, StartNote] = {}

    def refresh(self) -> bool:
        """Look for unknown jobs and report them; return whether anything has changed."""
        before = self._observed.now.safe_mode
        hub = hold.read(hub_database.path_in(self._observed.settings.state))
        now = SafeMode(self._ledger.lost, tuple(self._unknown()), self._ledger.unreadable, hub)
        if now == before:
            return False
        self._observed.put(with_fields(self._observed.now, safe_mode=now))
        self._observed.report("safe-mode", now.hold)
        self._observed.report("hub-database", now.hub)
        self._observed.report("unknown-jobs", _unknown_text(now.unknown))
        self._observed.report("unreadable", _unreadable_text(now.unreadable))
        # Jobs that were held back may be scheduled again, and queued jobs have another wait reason.
        changed = set(before.held_jobs) ^ set(now.held_jobs)
        if before.hold != now.hold:
            changed |= {job.id for job in self._ledger.live() if job.state is JobState.QUEUED}
        if changed:
            self._ledger.jobs_changed.publish([job for job in changed if self._ledger.job(job)])
        return True

    def doubts(self, caller: Caller) -> contract.SafeModeIssues:
        """Return unknown jobs and unreadable records. Errors: Forbidden for non-administrators."""
        rights.require_admin(caller, "list unknown jobs")
        self.refresh()
        return _doubts(self._observed.now.safe_mode)

    async def act(
        self, caller: Caller, request: contract.AdoptionRequest
    ) -> contract.SafeModeIssues:
        """Adopt or end an unknown job; an empty request only lists.

        Errors: Forbidden for non-administrators; InvalidInput, NotFound, Refused, Unavailable.
        """
        rights.require_admin(caller, "decide about unknown jobs")
        if request.end and request.id is None:
            raise InvalidInput(
                "The id of the job to end is missing. Use `benchpool adopt ID --end` with an id "
                "that `benchpool adopt` lists.",
                field="id",
            )
        if request.id is not None:
            await shielded(self._decide(caller, request.id, end=request.end))
        if request.go_on:
            await self._leave_safe_mode()
        if self.refresh():
            self._want_pass()
        return _doubts(self._observed.now.safe_mode)

    # ------------------------------------------------------------------ decisions

    async def _decide(self, caller: Caller, named: str, *, end: bool) -> None:
        safe_mode = self._observed.now.safe_mode
        every = {it.id for it in safe_mode.unknown} | {it.id for it in safe_mode.unreadable}
        found = {id_ for id_ in every if id_.startswith(named)}
        if len(found) > 1 and named not in found:
            raise InvalidInput(
                f"{len(found)} unknown ids begin with {named!r}. Give more characters of the id.",
                code="ambiguous-id",
                field="id",
            )
        job = next((it for it in safe_mode.unknown if it.id.startswith(named)), None)
        record = next(
            (it for it in safe_mode.unreadable if it.id.startswith(job.id if job else named)), None
        )
        if job is None and record is None:
            raise NotFound(f"No unknown job has the id {named}. `benchpool adopt` lists all ids.")
        if job is None and not end:
            raise Refused(
                f"{named} has no running worker to adopt, and its record cannot be read. "
                f"`benchpool adopt {named} --end` drops the record and frees its GPUs.",
                code="nothing-runs",
            )
        if end:
            await self._end(caller, job, record)
        elif job is not None:
            await self._adopt(caller, job, record)

    async def _adopt(self, caller: Caller, job: UnknownJob, record: Unreadable | None) -> None:
        known = self._origin(job, caller)
        attempt = known.attempt
        changes: list[Change] = [DropJob(job.id)] if record is not None else []
        async with self._ledger.lock:
            there = self._ledger.job(job.id)
            before = known.job if there is None else there
            taken = replace(
                before, state=JobState.STARTING, attempt=attempt.attempt, stop_request=None,
                note=None, promised=(), ended=None,
            )  # fmt: skip
            if there is None:
                body = msgspec.json.encode(known.submission)
                changes.append(AddJob(taken, body, _objects(known.submission)))
            else:
                changes.append(SaveJob(taken))
            changes.append(SaveAttempt(attempt))
            try:
                await self._ledger.commit(*changes)
            except Conflict as conflict:
                raise Refused(
                    f"Job {job.id[:8]} cannot be adopted, because another holder has its resources "
                    f"({conflict}). End that holder, or end this job with "
                    f"`benchpool adopt {job.id} --end`.",
                    code="taken",
                ) from None
            self._forget(record)
        if isinstance(self._runtime, UnexpectedWorkers):
            for worker in attempt.live_workers:
                await self._runtime.adopt(WorkerId(job.id, attempt.attempt, worker.index))

    async def _end(self, caller: Caller, job: UnknownJob | None, record: Unreadable | None) -> None:
        if job is not None and isinstance(self._runtime, UnexpectedWorkers):
            grace_s = self._observed.now.configuration.policy.grace_s
            notice = notices.unknown_ended(caller.name, grace_s)
            async with self._ledger.lock:
                there = self._ledger.job(job.id)
                if there is not None:
                    await self._ledger.commit(*self._over(there, job, caller))
            for worker in job.workers:
                await self._runtime.stop(worker, notice)
        if record is not None:
            async with self._ledger.lock:
                drop = DropLease(record.id) if record.kind == "lease" else DropJob(record.id)
                await self._ledger.commit(drop)
                self._forget(record)

    def _over(self, there: JobRecord, job: UnknownJob, caller: Caller) -> tuple[Change, ...]:
        """Return the changes that end the attempt of a known job; the job itself stays queued."""
        now = self._observed.settings.clock.now()
        attempt = self._origin(job, caller).attempt
        ended = tuple(replace(it, ended=now, ended_by="notice") for it in attempt.workers)
        over = replace(attempt, workers=ended, ended=now, ended_by="notice")
        return SaveAttempt(over), SaveJob(replace(there, attempt=attempt.attempt))

    async def _leave_safe_mode(self) -> None:
        """Leave safe mode and allow new work, after lost leases of benches are restored."""
        await self._observed.ask_hub()
        await self._leases.reconcile()
        if isinstance(self._ledger.store, Held):
            await self._ledger.store.release_hold()
        self._ledger.lost = None
        hold.release(hub_database.path_in(self._observed.settings.state))

    def _forget(self, record: Unreadable | None) -> None:
        left = (it for it in self._ledger.unreadable if it is not record)
        self._ledger.unreadable = tuple(left)

    # ------------------------------------------------------------------ unknown jobs

    def _unknown(self) -> Iterable[UnknownJob]:
        if not isinstance(self._runtime, UnexpectedWorkers):
            return
        of_attempt: dict[tuple[str, int], list[UnexpectedWorker]] = {}
        for it in self._runtime.unexpected_workers():
            of_attempt.setdefault((it.worker.job, it.worker.attempt), []).append(it)
        for (job, attempt), them in of_attempt.items():
            first = them[0]
            known = self._note(first)
            if known is None:
                own = first.variables
                names = [
                    own.get(f"BENCHPOOL_{word}", "") for word in ("JOB_NAME", "PROJECT", "USER")
                ]
            else:
                names = [known.job.name, known.job.project, known.job.user]
            since = [it.since for it in them if it.since is not None]
            yield UnknownJob(
                id=job,
                attempt=attempt,
                workers=tuple(it.worker for it in them),
                gpus=self._gpus(them),
                name=names[0],
                project=names[1],
                user=names[2],
                since=min(since, default=None),
                in_line=self._ledger.job(job) is not None,
            )

    def _gpus(self, them: Iterable[UnexpectedWorker]) -> tuple[str, ...] | None:
        """Return the GPUs that these workers hold, or None if that is unknown for one of them."""
        found: list[str] = []
        for it in them:
            known = self._note(it)
            if known is not None:
                own = (w.gpus for w in known.attempt.workers if w.index == it.worker.worker)
                found += next(own, ())
            elif "CUDA_VISIBLE_DEVICES" in it.variables:
                found += [gpu for gpu in it.variables["CUDA_VISIBLE_DEVICES"].split(",") if gpu]
            else:
                return None
        return tuple(found)

    def _note(self, it: UnexpectedWorker) -> StartNote | None:
        if it.worker not in self._origins:
            known = origin.decode(it.origin)
            if known is None or known.job.id != it.worker.job:
                return None
            self._origins[it.worker] = known
        return self._origins[it.worker]

    def _origin(self, job: UnknownJob, caller: Caller) -> StartNote:
        """Return the job as recorded at its start, or a guess from its processes."""
        them = [it for it in self._unknown_workers() if it.worker in job.workers]
        for it in them:
            known = self._note(it)
            if known is not None:
                return known
        now = self._observed.settings.clock.now()
        workers = tuple(
            WorkerRecord(it.worker.worker, NODE_OF_A_GUESS, self._gpus([it]) or (), it.since)
            for it in sorted(them, key=lambda it: it.worker.worker)
        )
        gpus = max((len(it.gpus) for it in workers), default=0)
        spec = JobSpec(gpus=gpus, workers=len(workers))
        first = them[0]
        node = next(iter(self._observed.now.inventory.nodes), NODE_OF_A_GUESS)
        record = JobRecord(
            id=job.id,
            name=job.name or f"adopted-{job.id[:8]}",
            project=job.project or self._some_project(),
            user=job.user or caller.name,
            state=JobState.STARTING,
            submitted=job.since or now,
            queued_since=job.since or now,
            spec=spec,
            attempt=job.attempt,
        )
        return StartNote(
            record,
            AttemptRecord(
                job=job.id, attempt=job.attempt, decided=job.since or now,
                workers=tuple(replace(it, node=node, started=None) for it in workers),
            ),
            JobSubmission(
                entry=CommandEntry(list(first.argv) or ["true"]),
                working_dir=first.working_dir or None,
                gpus=gpus,
                workers=len(workers),
            ),
        )  # fmt: skip

    def _unknown_workers(self) -> tuple[UnexpectedWorker, ...]:
        return (
            self._runtime.unexpected_workers()
            if isinstance(self._runtime, UnexpectedWorkers)
            else ()
        )

    def _some_project(self) -> str:
        configuration = self._observed.now.configuration
        leaves = (it.name for it in configuration.projects if not configuration.is_parent(it.name))
        return str(next(leaves, ""))


def _objects(submission: JobSubmission) -> tuple[str, ...]:
    """Return the hashes of the contents that a job names; they are kept as long as the job is."""
    own = (submission.entry.notebook,) if isinstance(submission.entry, NotebookEntry) else ()
    return (*own, *(file.sha256 for file in submission.files))


def _unknown_text(unknown: tuple[UnknownJob, ...]) -> str | None:
    if not unknown:
        return None
    gpus = sum(len(job.gpus or ()) for job in unknown)
    names = ", ".join(job.id for job in unknown[:5])
    more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
    verb = "runs and is" if len(unknown) == 1 else "run and are"
    return (
        f"{count(len(unknown), 'job')} {verb} not known to the database ({names}{more}); "
        f"the scheduler does not assign their {count(gpus, 'GPU')}. {ADVICE}"
    )


def _unreadable_text(unreadable: tuple[Unreadable, ...]) -> str | None:
    if not unreadable:
        return None
    first = unreadable[0]
    gpus = sum(len(it.gpus) for it in unreadable)
    more = f", and {len(unreadable) - 1} more" if len(unreadable) > 1 else ""
    return (
        f"The record of {first.kind} {first.id} in {first.file} cannot be read "
        f"({first.why}){more}. All other work goes on; the scheduler does not assign the "
        f"{count(gpus, 'GPU')} of such records. {ADVICE}"
    )


def _doubts(safe_mode: SafeMode) -> contract.SafeModeIssues:
    return contract.SafeModeIssues(
        hold=safe_mode.hold,
        hub=safe_mode.hub,
        unknown=[
            contract.UnknownRun(
                id=job.id,
                attempt=job.attempt,
                name=job.name,
                project=job.project,
                user=job.user,
                gpus=None if job.gpus is None else list(job.gpus),
                since=None if job.since is None else datetime.fromtimestamp(job.since, UTC),
                in_line=job.in_line,
            )
            for job in safe_mode.unknown
        ],
        unreadable=[
            contract.UnreadableRecord(it.kind, it.id, it.file, it.why, list(it.gpus))
            for it in safe_mode.unreadable
        ],
    )
