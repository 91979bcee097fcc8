"""Operations on jobs with access checks: submit, read, act."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from benchpool_scheduler import contract
from benchpool_scheduler.contract.actions import JobActions
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.errors import BenchpoolError, Refused, Unavailable
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.jobs.commands import Commands
from benchpool_scheduler.service.jobs.lookup import visible_job
from benchpool_scheduler.service.jobs.previews import Previews
from benchpool_scheduler.service.jobs.submission_checks import name_of
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.shielded import shielded
from benchpool_scheduler.service.views.job_views import JobViews
from benchpool_scheduler.store.records import JobRecord

log = logging.getLogger(__name__)

ANSWER_S = 8.0
"""Timeout for storing a submission, in seconds; then the answer is 503. Clients and proxies have
longer timeouts.
"""


class Jobs:
    """Operations on jobs; ``job`` is an ID, or a unique prefix of at least 4 characters."""

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        admission: Admission,
        commands: Commands,
        previews: Previews,
        views: JobViews,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._admission = admission
        self._commands = commands
        self._previews = previews
        self._views = views

    # ------------------------------------------------------------------ submission

    async def submit(self, caller: Caller, submission: contract.JobSubmission) -> contract.Job:
        """Accept a job; it is on disk when this returns. A repeat by key returns the first job.

        Errors: InvalidInput, Forbidden, NotFound, Refused, TooLarge, TooMany, Unavailable.
        """
        return (await self.submit_once(caller, submission))[0]

    async def submit_once(
        self, caller: Caller, submission: contract.JobSubmission
    ) -> tuple[contract.Job, bool]:
        """Submit as ``submit`` does; return the job, and whether it is new (HTTP 201) or a repeat
        (200).

        The call returns within ``ANSWER_S``, even while the store is unavailable. Errors: as
        ``submit``.
        """
        storing = asyncio.ensure_future(self._admission.submit(caller, submission))
        done, _ = await asyncio.wait([storing], timeout=ANSWER_S)
        if not done:
            storing.add_done_callback(_late)
            raise _not_stored_yet(submission.key)
        record, new = storing.result()
        return self._views.job(self._now(record), caller), new

    async def preview(self, caller: Caller, submission: contract.JobSubmission) -> contract.Preview:
        """Return what would happen to this submission now; its objects may still be missing.

        Errors: those of ``submit``.
        """
        return await self._previews.preview(caller, submission)

    # ------------------------------------------------------------------ reading

    def select(
        self,
        caller: Caller,
        *,
        all: bool = False,
        project: str | None = None,
        state: contract.State | None = None,
        limit: int = 1000,
        **more: Any,
    ) -> list[contract.Job]:
        """Return jobs, newest first: the caller's own, or with ``all`` each one that the caller may
        see.

        Args:
            more: Further fields of ``JobsQuery``.
        """
        query = contract.JobsQuery(all, project, state, limit, **more)
        whose = query.user
        users, projects = self._visible(caller, all=all or whose is not None, project=project)
        if whose is not None and users is None:
            users = (whose,)
        chosen = (
            record
            for record in self._ledger.job_index.newest(
                users=users,
                projects=projects,
                state=None if state is None else JobState(state.value),
            )
            if query.admits(record.project, record.spec)
            and whose in (None, record.user)
            and (record.live or not query.live)
            and query.finds(record.name, record.id, record.user, record.project, *record.spec.tags)
            and (query.reason is None or query.reason == self._views.reason_code(record, caller))
        )
        page = islice(chosen, query.offset, query.offset + max(0, limit))
        return [self._views.job(record, caller) for record in page]

    def _visible(
        self, caller: Caller, *, all: bool, project: str | None
    ) -> tuple[Sequence[str] | None, Sequence[str] | None]:
        """Return the users and projects to which a list is limited; None for no limit."""
        if all and rights.rules_all(caller):
            return (None, None) if project is None else ((), (project,))
        led = rights.led_projects(caller, self._observed.now.configuration) if all else ()
        if project in led:
            return (), (project,)
        return (caller.name,), led if project is None else ()

    def detail(self, caller: Caller, job: str) -> contract.JobDetail:
        """Return a job and its attempts. Errors: NotFound."""
        return self._views.detail(self._find(caller, job), caller)

    def attempts(self, caller: Caller, job: str) -> list[contract.Attempt]:
        """Return only the attempts of a job, for lists of many jobs. Errors: NotFound."""
        return self._views.attempts(self._find(caller, job))

    def why(self, caller: Caller, job: str) -> contract.Why:
        """Explain why a job waits (R22). Errors: NotFound."""
        return self._views.why(self._find(caller, job), caller)

    def usage(self, caller: Caller, job: str) -> contract.JobUsage:
        """Return how an ended job used its GPUs. Errors: NotFound, Refused before its end."""
        record = self._find(caller, job)
        found = self._views.usage(record)
        if found is None:
            raise Refused(
                f"Job {record.id[:8]} ({record.name}) is {record.state}: its GPU use is reported "
                "when it has ended.",
                code="not-ended",
                numbers={"state": str(record.state)},
            )
        return found

    def submission(self, caller: Caller, job: str) -> contract.JobSubmission:
        """Return the submission without its key and with the present name. Errors: NotFound."""
        record = self._find(caller, job)
        stored = self._ledger.store.submission(record.id)
        if stored is None:
            raise rights.no_job(job)
        found = msgspec.json.decode(stored, type=contract.JobSubmission)
        name = found.name if record.name == name_of(found) else record.name
        return msgspec.structs.replace(found, key=None, name=name)

    # ------------------------------------------------------------------ commands

    async def act(
        self, caller: Caller, job: str, action: str, body: Struct | None = None
    ) -> contract.Job:
        """Carry out an action of the table on a job (``contract.actions.JobActions``); idempotent.

        ``body`` is the body of the action, empty by default.

        Errors: NotFound, InvalidInput, Refused if the job's state does not allow it.
        """
        record = self._find(caller, job)
        asked = getattr(JobActions, action).body() if body is None else body
        await shielded(self._commands.act(caller, record.id, action, asked))
        return self._views.job(self._now(record), caller)

    def _find(self, caller: Caller, job: str) -> JobRecord:
        return visible_job(self._ledger, self._observed.now.configuration, caller, job)

    def _now(self, record: JobRecord) -> JobRecord:
        return self._ledger.job(record.id) or record


def _not_stored_yet(key: str | None) -> Unavailable:
    """Return the error for a submission that may still be stored.

    With a key it is safe to repeat. Without one the client must check its jobs first.
    """
    repeat = (
        "send it again with the same key, with which it is accepted only once"
        if key is not None
        else "check your jobs before you send it again, because it has no key"
    )
    return Unavailable(
        f"The job was not stored within {ANSWER_S:g} s, but may still be: {repeat}.",
        code="not-stored-yet",
        numbers={"seconds": ANSWER_S},
    )


def _late(storing: asyncio.Task[tuple[JobRecord, bool]]) -> None:
    """Log the outcome of a submission that was answered before it was stored."""
    failed = None if storing.cancelled() else storing.exception()
    if storing.cancelled() or isinstance(failed, BenchpoolError):
        log.warning("a submission was not stored after its timeout: %s", failed)
    elif failed is not None:
        log.error("a submission failed after its timeout", exc_info=failed)
    else:
        log.info("job %s was stored after its submission's timeout", storing.result()[0].id)
