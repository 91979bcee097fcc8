"""Acceptance of jobs: check, write, answer; a repeat with the same key returns the first job."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import structs
from msgspec.structs import replace

from benchpool_scheduler.contract import JobSpec, JobSubmission
from benchpool_scheduler.contract.spec import SELF_TEST
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.errors import BenchpoolError, Refused
from benchpool_scheduler.service.access import membership
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.execution import containers
from benchpool_scheduler.service.jobs import dependencies, feasibility, repeats, submission_checks
from benchpool_scheduler.service.jobs.admitted import fixed_pods
from benchpool_scheduler.service.jobs.home_quota import HomeQuota
from benchpool_scheduler.service.jobs.job_file_quota import JobFileQuota
from benchpool_scheduler.service.jobs.self_test_checks import check_self_test
from benchpool_scheduler.service.jobs.uploads import UploadedContents
from benchpool_scheduler.service.ledger.hours_used import HoursUsed
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.records import AddJob, JobRecord, Note


class Admission:
    """Entry point of submissions.

    Several submissions may be in progress at once; the store writes them together.

    Attributes:
        accepted: Number of jobs accepted since the start. ``refused``: refusals by code.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        objects: UploadedContents,
        homes: HomeQuota,
        files: JobFileQuota,
        hours: HoursUsed,
        want_pass: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._objects = objects
        self._homes = homes
        self._files = files
        self._hours = hours
        self._want_pass = want_pass
        self._feasibility = feasibility.Feasibility(observed)
        self._on_their_way: dict[tuple[str, str], asyncio.Future[JobRecord]] = {}
        self._coming: Counter[str] = Counter()
        self._coming_bytes: Counter[str] = Counter()
        self.accepted = 0
        self.refused: Counter[str] = Counter()

    async def submit(self, caller: Caller, submission: JobSubmission) -> tuple[JobRecord, bool]:
        """Accept a job durably; return it, and whether it is new.

        Errors: see ``checked``; Refused ``repeated-key`` for other content under a known key.
        """
        if submission.key is None:
            self._check_deadline(submission)
            return await self._accept(caller, submission), True
        known = self._ledger.by_key(caller.name, submission.key)
        if known is None:
            await self._ledger.whole.wait()
            known = self._ledger.by_key(caller.name, submission.key)
        if known is not None:
            self._check_repeat(known, submission)
            return known, False
        self._check_deadline(submission)
        return await self._once(caller, submission, (caller.name, submission.key))

    def _check_deadline(self, submission: JobSubmission) -> None:
        """Refuse a submission whose deadline has passed."""
        submission_checks.check_deadline(submission, self._observed.settings.clock.now())

    async def take_in(
        self, caller: Caller, submission: JobSubmission, job: str, *, paused: Note | None = None
    ) -> None:
        """Accept a job that was written into the store, under its ID there.

        Args:
            paused: Reason to start paused; None queues the job.

        Errors: see ``checked``; Refused ``repeated-key`` if another job of the caller has its key.
        """
        if self._ledger.job(job) is not None:
            return
        known = None if submission.key is None else self._ledger.by_key(caller.name, submission.key)
        if known is not None:
            raise Refused(
                f"Job {known.id[:8]} ({known.name}) of {caller.name} has the key "
                f"{submission.key!r} already; choose another key, or none.",
                code="repeated-key",
                field="key",
            )
        await self._accept(caller, submission, job, paused)

    async def accept_as(self, caller: Caller, submission: JobSubmission, job: str) -> None:
        """Accept an internal submission under an ID chosen before; an existing job stays as it is.

        Errors: those of ``submit``.
        """
        if self._ledger.job(job) is None:
            pinned = containers.pinned(self._observed.settings, caller.name, submission)
            await self._accept(caller, pinned, job)

    async def _once(
        self, caller: Caller, submission: JobSubmission, key: tuple[str, str]
    ) -> tuple[JobRecord, bool]:
        coming = self._on_their_way.get(key)
        if coming is not None:
            known = await asyncio.shield(coming)
            self._check_repeat(known, submission)
            return known, False
        task = asyncio.ensure_future(self._accept(caller, submission))
        self._on_their_way[key] = task
        task.add_done_callback(lambda _: self._on_their_way.pop(key))
        # The first caller may disconnect; later ones with the same key wait for the same job.
        return await asyncio.shield(task), True

    def _check_repeat(self, job: JobRecord, submission: JobSubmission) -> None:
        try:
            first = self._ledger.submission(job.id)
        except msgspec.DecodeError:  # from an earlier release; an accepted job stays accepted
            return
        repeats.check_same(job, first, submission)

    async def _accept(
        self,
        caller: Caller,
        submission: JobSubmission,
        job: str | None = None,
        paused: Note | None = None,
    ) -> JobRecord:
        try:
            self._observed.now.safe_mode.require_open()
            await self._hours.refresh(self._observed.now.configuration)
            record = self.checked(caller, submission, job)
            if paused is not None:
                record = replace(record, state=JobState.PAUSED, note=paused)
            needed = submission_checks.objects_of(submission)
            if needed:
                submission_checks.check_objects(needed, self._objects.present(caller.name, needed))
            if job is None:
                submission = containers.pinned(self._observed.settings, caller.name, submission)
            body = msgspec.json.encode(replace(submission, project=record.project))
            if caller.kind == "user":
                await self._homes.check(caller.name)
                await self._files.check(caller.name)
            self._check_budget(caller, len(body))
        except BenchpoolError as error:
            self.refused[error.code] += 1
            raise
        self._coming[caller.name] += 1
        self._coming_bytes[caller.name] += len(body)
        try:
            await self._ledger.commit(AddJob(record, body, needed))
        finally:
            self._coming[caller.name] -= 1
            self._coming_bytes[caller.name] -= len(body)
        self._ledger.submission_cache.put(record.id, submission, len(body))
        self.accepted += 1
        self._want_pass()
        return record

    def _check_budget(self, caller: Caller, size: int) -> None:
        """Refuse more live jobs, or bytes of submissions, than a user may have. Errors: TooMany."""
        budgets, user = self._observed.now.configuration.budgets, caller.name
        jobs = self._ledger.live_of(user) + self._coming[user]
        submission_checks.check_queue(user, jobs, budgets.jobs)
        alive = self._ledger.submission_bytes.of(user) + self._coming_bytes[user]
        submission_checks.check_bytes(user, alive, size, budgets.submissions_mib)

    def check_change(self, caller: Caller, job: JobRecord, wanted: Mapping[str, Any]) -> None:
        """Refuse a size, time limit or project with which an accepted job could never run (R22).

        A change to fewer resources is accepted even if the job cannot run now.

        Errors: InvalidInput, Refused, Forbidden for a project without access.
        """
        fields = {name: wanted[name] for name in wanted if name != "project"}
        spec = job.spec.changed(**fields)
        project = wanted.get("project", job.project)
        submission = self._ledger.submission(job.id)
        fixed_pods.check_may_change(submission, wanted)
        changed = replace(submission, **structs.asdict(spec), project=project)
        submission_checks.check_least(changed)
        if project != job.project:
            configuration = self._observed.now.configuration
            settings = membership.project_of(caller, changed, configuration)
            self._hours.check(settings.name, job.user, configuration)
        elif _asks_for_less(spec, job.spec):
            return
        self._feasibility.check(replace(job, spec=spec, project=project), changed)

    def checked(
        self, caller: Caller, submission: JobSubmission, job: str | None = None
    ) -> JobRecord:
        """Return the job of a submission, without looking for uploaded contents.

        Args:
            job: The ID that it has already, if any.

        Errors: InvalidInput, Forbidden, Refused, TooLarge.
        """
        if caller.kind == "user":
            self._observed.meet(caller.as_hub_user())
        configuration = self._observed.now.configuration
        fixed_pods.check_sender(submission, admits=caller.kind == "cluster")
        submission_checks.check_shape(submission)
        check_self_test(caller, submission)
        submission_checks.check_values(submission, configuration.budgets.values_gib)
        settings = membership.project_of(caller, submission, configuration)
        if SELF_TEST not in submission.tags:
            self._hours.check(settings.name, caller.name, configuration)
        submission_checks.check_image(submission, images=self._observed.settings.images)
        feasibility.check_levels(submission, configuration)
        now = self._observed.settings.clock.now()
        awaits = dependencies.awaited(self._ledger, caller, submission)
        record = JobRecord(
            id=job or self._observed.settings.new_id(),
            name=submission_checks.name_of(submission),
            project=settings.name,
            user=caller.name,
            state=JobState.QUEUED,
            submitted=now,
            queued_since=now,
            spec=submission.spec,
            key=submission.key,
            parameters=submission.parameters,
            awaits=awaits,
            freed=dependencies.freed(awaits, submission, now),
        )
        self._feasibility.check(record, submission)
        return record


def _asks_for_less(now: JobSpec, was: JobSpec) -> bool:
    """Return whether the specs differ only in priority, time limit, or fewer GPUs or workers."""
    same = was.changed(
        gpus=now.gpus,
        workers=now.workers,
        priority=now.priority,
        time_limit_s=now.time_limit_s,
    )
    return same == now and now.gpus <= was.gpus and now.workers <= was.workers
