"""Disk use of job files per user, and refusal of jobs of users over their limit.

Results and checkpoints below ``jobs`` of the state folder count. Files in homes and on volumes of
users have limits of their own. A count is made when the user submits a job or views the quota, and
only if there is a limit. Folders of an ended job no longer change, so they are counted once.
Archives from agents of a cluster are counted each time, since the agent's token outlives its job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from benchpool_scheduler import contract
from benchpool_scheduler.errors import InvalidInput, Refused, TooLarge
from benchpool_scheduler.phrases import data_size
from benchpool_scheduler.runtime import Part, Runtime
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs import disk_use
from benchpool_scheduler.service.jobs.lookup import visible_job
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.shielded import shielded
from benchpool_scheduler.store.records import JobRecord
from benchpool_scheduler.worker.folders import Folders

GIB = 1024**3
GOOD_S = 60.0
PATIENCE_S = 2.0
"""Timeout for a count, in seconds; a longer count continues and applies to the next request."""

ARCHIVE = ".tar"
"""Suffix of archives from agents."""

PARTS: tuple[Part, ...] = get_args(Part)
BOUNDED: tuple[Part, ...] = ("results", "checkpoints")
"""Kinds of files with a limit, ``budgets.<kind>_gib``; a log is limited per worker."""


@dataclass(slots=True)
class _Count:
    """Disk use of one user's files of one kind, in bytes by job.

    ``over`` are the jobs that have ended; ``folders`` are sizes that need no further count.
    """

    at: float = 0.0
    jobs: dict[str, int] = field(default_factory=dict)
    folders: dict[Path, int] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)

    @property
    def used(self) -> int:
        return sum(self.jobs.values())


class JobFileQuota:
    """Disk use of the results and checkpoints of submitters."""

    def __init__(self, ledger: Ledger, observed: SchedulerState, runtime: Runtime) -> None:
        self._ledger = ledger
        self._runtime = runtime
        self._observed = observed
        self._folders = Folders(observed.settings.state)
        self._counts: dict[tuple[str, Part], _Count] = {}
        self._counting: dict[tuple[str, Part], asyncio.Task[None]] = {}

    def jobs_changed(self, jobs: Collection[str]) -> None:
        """Mark the counts of users whose jobs have ended as out of date."""
        if not self._counts:
            return
        for job in jobs:
            record = self._ledger.job(job)
            if record is not None and not record.live:
                for part in BOUNDED:
                    count = self._counts.get((record.user, part))
                    if count is not None:
                        count.at = 0.0

    async def check(self, user: str) -> None:
        """Refuse a job if the files of its user are over a limit. Errors: TooLarge."""
        for part in BOUNDED:
            most = self._most(part)
            if most is None:
                continue
            count = await self._known(user, part, most)
            if count.used > most:
                raise _too_large(user, part, count, most, self._ledger.job)

    async def of(self, user: str) -> list[contract.FilesQuota]:
        """Return the disk use of a user's files, for each kind with a limit."""
        found = []
        for part in BOUNDED:
            most = self._most(part)
            if most is not None:
                count = await self._known(user, part, most)
                found.append(contract.FilesQuota(part, count.used, most))
        return found

    async def sizes(self, caller: Caller, job: str) -> dict[str, int] | None:
        """Return the bytes of each kind of files of an ended job; empty before its end.

        Return None if counting takes too long. Errors: NotFound.
        """
        record = visible_job(self._ledger, self._observed.now.configuration, caller, job)
        if record.live:
            return {}
        lying = {it: await asyncio.to_thread(self._with_files, record.id, it) for it in PARTS}
        try:
            async with asyncio.timeout(PATIENCE_S):
                sizes = await disk_use.counted([path for paths in lying.values() for path in paths])
        except TimeoutError:
            return None
        return {part: sum(sizes.get(it, 0) for it in lying[part]) for part in PARTS if lying[part]}

    def _with_files(self, job: str, part: Part) -> list[Path]:
        found = self._folders.lying(job, part)
        return [path for path in found if not path.is_dir() or any(path.iterdir())]

    async def discard(self, caller: Caller, job: str, asked: contract.JobDiscard) -> str:
        """Delete files of an ended job permanently and return its ID.

        Errors: NotFound; InvalidInput if no kind is named; Refused before its end.
        """
        record = visible_job(self._ledger, self._observed.now.configuration, caller, job)
        parts = [part for part in PARTS if getattr(asked, part)]
        if not parts:
            raise InvalidInput(
                "Name the files to delete: results, checkpoints or logs.", field="body"
            )
        if record.live:
            raise Refused(
                f"Job {record.id[:8]} ({record.name}) is {record.state.value} and needs its files: "
                "cancel it first, or wait until it has ended.",
                code="not-ended",
            )
        for part in parts:
            await shielded(self._runtime.prune([record.id], part))
        return record.id

    async def close(self) -> None:
        """Cancel the counts in progress."""
        for task in self._counting.values():
            task.cancel()
        await asyncio.gather(*self._counting.values(), return_exceptions=True)

    def _most(self, part: Part) -> int | None:
        budgets = self._observed.now.configuration.budgets
        gib = budgets.results_gib if part == "results" else budgets.checkpoints_gib
        return None if gib is None else gib * GIB

    async def _known(self, user: str, part: Part, most: int) -> _Count:
        """Return the cached count; recount if it is old or over the limit.

        A deletion of files therefore takes effect at once.
        """
        key, now = (user, part), self._observed.settings.clock.now()
        known = self._counts.get(key, _Count())
        if not known.at or known.used > most or now - known.at > GOOD_S:
            if key not in self._counting:
                task = asyncio.create_task(self._count(user, part))
                self._counting[key] = task
                task.add_done_callback(lambda _: self._counting.pop(key))
            await asyncio.wait([self._counting[key]], timeout=PATIENCE_S)
        return self._counts.get(key, known)

    async def _count(self, user: str, part: Part) -> None:
        before = self._counts.get((user, part), _Count())
        await self._ledger.whole.wait()
        jobs = [job for job in self._ledger.job_index.newest(users=(user,)) if job.attempt]
        over = {job.id for job in jobs if not job.live}
        lying = await asyncio.to_thread(self._lying, [job.id for job in jobs], part)
        counted = {path for job in before.over for path in lying.get(job, ())}
        folders = {path: size for path, size in before.folders.items() if path in counted}
        every = {path for paths in lying.values() for path in paths}
        archives = {path for path in every if path.suffix == ARCHIVE}
        folders |= await disk_use.counted(list(every - archives - folders.keys()))
        sizes = folders | await asyncio.to_thread(disk_use.of_files, archives)
        held = {job: sum(sizes.get(it, 0) for it in paths) for job, paths in lying.items()}
        now = self._observed.settings.clock.now()
        self._counts[user, part] = _Count(now, held, folders, over & held.keys())

    def _lying(self, jobs: Iterable[str], part: Part) -> dict[str, list[Path]]:
        found = ((job, self._folders.lying(job, part)) for job in jobs)
        return {job: paths for job, paths in found if paths}


def _too_large(
    user: str,
    part: Part,
    count: _Count,
    most: int,
    job_of: Callable[[str], JobRecord | None],
) -> TooLarge:
    """Return the refusal, which names the job with the most bytes and how to delete its files.

    The job is an ended one, if deleting files of ended jobs suffices.
    """
    ended = sum(count.jobs[it] for it in count.over)
    enough = count.used - ended <= most
    among = [it for it in count.jobs if (it in count.over) is enough]
    record = job_of(max(among, key=lambda it: count.jobs[it]))
    way = ""
    if record is not None:
        id_ = record.id[:8]
        first = "save the files that you need"
        if not enough:
            first = f"cancel it or wait until it has ended, {first}"
        way = (
            f"Of the {'ended jobs' if enough else 'jobs that have not ended'}, {id_} "
            f"({record.name}) holds most, {data_size(count.jobs[record.id])}: {first}, then "
            f"`benchpool discard {id_} --{part}` deletes them for good. "
        )
    return TooLarge(
        f"The {part} of the jobs of {user} hold {data_size(count.used)}; {data_size(most)} are "
        f"allowed. {way}An administrator can raise budgets.{part}_gib.",
        code=f"{part}-full",
        numbers={"bytes": count.used, "limit": most},
    )
