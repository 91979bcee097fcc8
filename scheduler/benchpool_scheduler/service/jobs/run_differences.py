"""Comparison of two runs: selection of the other run, and the differences."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice

from benchpool_scheduler.changes.code import code_difference
from benchpool_scheduler.changes.environments import environment_changes
from benchpool_scheduler.changes.options import is_repeat, option_changes
from benchpool_scheduler.contract import Job, JobSubmission, SentCode
from benchpool_scheduler.contract.run_changes import RunChanges
from benchpool_scheduler.contract.run_environment import RunEnvironment
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.runtime import Results, Runtime
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.contents import JobContents
from benchpool_scheduler.service.jobs.jobs import Jobs
from benchpool_scheduler.service.jobs.run_records import recorded
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.worker.folders import Folders

LOOKED_AT = 50
"""Maximum number of runs of the same name that are considered."""


class RunDifferences:
    """Comparison of jobs for callers who may see both."""

    def __init__(
        self, jobs: Jobs, contents: JobContents, observed: SchedulerState, runtime: Runtime
    ) -> None:
        self._jobs = jobs
        self._contents = contents
        self._folders = Folders(observed.settings.state)
        self._runtime = runtime

    def others(self, caller: Caller, job: Job) -> list[Job]:
        """Return the other runs of the same user, project and name, newest first."""
        same = self._jobs.select(caller, all=True, user=job.user, project=job.project)
        found = (it for it in same if it.name == job.name and it.id != job.id)
        return list(islice(found, LOOKED_AT))

    def before(self, caller: Caller, job: Job) -> Job | None:
        """Return the previous run; a run that this one repeats takes precedence. Errors:
        NotFound.
        """
        earlier = [it for it in self.others(caller, job) if it.submitted < job.submitted]
        asked = self._jobs.submission(caller, job.id)
        return next(self._repeated(caller, earlier, asked), next(iter(earlier), None))

    def _repeated(self, caller: Caller, earlier: list[Job], asked: JobSubmission) -> Iterator[Job]:
        return (it for it in earlier if is_repeat(self._jobs.submission(caller, it.id), asked))

    async def environment(self, caller: Caller, job: str) -> RunEnvironment | None:
        """Return the recorded environment of a run, or None if it is not known here. Errors:
        NotFound.
        """
        id_ = self._jobs.detail(caller, job).job.id
        runtime = self._runtime
        packed = runtime.results(id_, 0) if isinstance(runtime, Results) else None
        return await asyncio.to_thread(recorded, self._folders.output(id_), packed)

    async def changes(self, caller: Caller, job: str, than: str | None) -> RunChanges:
        """Return the differences of a job from another one, by default the previous. Errors:
        NotFound.
        """
        after = self._jobs.detail(caller, job).job
        if than is not None:
            before: Job | None = self._jobs.detail(caller, than).job
        else:
            before = self.before(caller, after)
        if before is None:
            return RunChanges(None, after.id)
        pair = [self._jobs.submission(caller, it.id) for it in (before, after)]
        codes = [
            await self._code(one.id, it) for one, it in zip((before, after), pair, strict=True)
        ]
        around = [await self.environment(caller, it.id) for it in (before, after)]
        found = option_changes(*pair)
        if around[0] is not None and around[1] is not None:
            found += environment_changes(around[0], around[1])
        lines, note = await asyncio.to_thread(code_difference, codes[0], codes[1])
        return RunChanges(
            before.id,
            after.id,
            found,
            [line.text for line in lines],
            note,
            [one.id for one, it in zip((before, after), around, strict=True) if it is None],
        )

    async def _code(self, job: str, submission: JobSubmission) -> SentCode | None:
        try:
            return await self._contents.code(job, submission)
        except NotFound:
            return None
