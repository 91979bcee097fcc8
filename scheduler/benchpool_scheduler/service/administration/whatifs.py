"""What-if questions: the pool at this moment with another configuration or more GPUs.

Both pools are frozen snapshots of one instant. The passes over them run in a thread beside the
service's loop and change nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from benchpool_scheduler import contract
from benchpool_scheduler.configuration import Configuration, written
from benchpool_scheduler.core.model import (
    JobFacts,
    JobId,
    Policy,
    Project,
    ProjectName,
    Snapshot,
    WaitReason,
)
from benchpool_scheduler.core.whatif import whatif
from benchpool_scheduler.core.whatif.expansion import with_nodes
from benchpool_scheduler.errors import InvalidInput, TooMany
from benchpool_scheduler.phrases import count, gpu_time
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration import workloads
from benchpool_scheduler.service.administration.history import History, RecordedHistory
from benchpool_scheduler.service.administration.reconfiguration import Reconfiguration
from benchpool_scheduler.service.cluster_state import node_inputs, snapshots
from benchpool_scheduler.service.cluster_state.node_inputs import NodeInputs
from benchpool_scheduler.service.cluster_state.state_cache import StateCache
from benchpool_scheduler.service.ledger.hours_used import HoursUsed
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.lifecycle import job_reasons
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.simulation.whatif import Replayed, Side, replay_both

MOST_JOBS = 1000
"""Maximum number of jobs in an answer."""


@dataclass(frozen=True, slots=True)
class OtherSettings:
    """Inputs of the core under another configuration.

    Attributes:
        moved: Projects of the core whose jobs belong to another project then.
        hours: Effect of GPU-hour budgets on jobs then: the reason that blocks the job, and
            whether other jobs of its project go first.
    """

    node_inputs: NodeInputs
    projects: tuple[Project, ...]
    policy: Policy
    moved: Mapping[ProjectName, ProjectName]
    hours: Mapping[JobId, tuple[WaitReason | None, bool]]

    def of(self, job: JobFacts) -> JobFacts:
        """Return a job as the core would see it."""
        blocked, behind = self.hours.get(job.id, (job.blocked, job.behind))
        project = self.moved.get(job.project, job.project)
        if (project, blocked, behind) == (job.project, job.blocked, job.behind):
            return job
        return replace(job, project=project, blocked=blocked, behind=behind)


@dataclass(frozen=True, slots=True)
class ComparedPools:
    """The pool as it is and the change to compare it with: plain data for another thread."""

    before: Snapshot
    question: contract.WhatIfQuestion
    settings: OtherSettings | None

    def after(self) -> Snapshot:
        """Return the pool after the change."""
        pool, asked, settings = self.before, self.question, self.settings
        if settings is not None:
            pool = replace(
                pool,
                nodes=node_inputs.nodes(settings.node_inputs),
                projects=settings.projects,
                policy=settings.policy,
                jobs=tuple(map(settings.of, pool.jobs)),
            )
        return with_nodes(pool, asked.more_gpus, asked.gpu_model, asked.gpus_per_node)


def _begin(seen: Observations, new: Configuration, now: float) -> float:
    """Return the begin of the first new reservation, or the present if there is none."""
    own = written(seen.configuration).reservations
    asked = (it for it in new.reservations if it not in own and it.ends_s > now)
    return max(now, min((it.begins_s for it in asked), default=now))


class WhatIfs:
    """Comparisons of the pool with a changed copy, one at a time."""

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        state_cache: StateCache,
        reconfiguration: Reconfiguration,
        history: RecordedHistory,
        hours: HoursUsed,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._state_cache = state_cache
        self._reconfiguration = reconfiguration
        self._history = history
        self._hours = hours
        self._busy = asyncio.Lock()

    async def ask(self, caller: Caller, question: contract.WhatIfQuestion) -> contract.WhatIf:
        """Return which jobs would run, wait and be paused with another configuration or more GPUs.

        Errors: Forbidden for non-administrators; InvalidInput for a question without a difference
        or an invalid configuration; TooMany while another question is being answered.
        """
        rights.require_admin(caller, "run what-ifs")
        if question.config is None and not question.settings and not question.more_gpus:
            raise InvalidInput(
                "Nothing to compare. Name a configuration, more GPUs, or both.",
                field="config",
            )
        if self._busy.locked():
            raise TooMany(
                "Another what-if is running, and only one runs at a time. Try again in a moment.",
                code="whatif-busy",
            )
        async with self._busy:
            # Parsing a configuration of many users would block the event loop.
            new = await asyncio.to_thread(self._other, question)
            twins = await self._twins(question, new)
            past = await self._past(question)
            after = await asyncio.to_thread(twins.after)
            before = twins.before
            found = await asyncio.to_thread(whatif.compare, before, after)
            replayed = (
                None
                if past is None
                else await asyncio.to_thread(
                    replay_both,
                    past.jobs,
                    _side(before, self._observed.now.configuration, past),
                    _side(after, new or self._observed.now.configuration, past),
                    past.costs,
                )
            )
            change = (
                contract.ConfigurationChange(applied=False, changes=[])
                if new is None
                else self._reconfiguration.difference(new)
            )
            return self._answer(found, change, replayed)

    async def prepare(self, caller: Caller) -> None:
        """Parse the configuration in force in advance, so that questions about its values are fast.

        Errors: Forbidden for non-administrators.
        """
        rights.require_admin(caller, "run what-ifs")
        await asyncio.to_thread(self._reconfiguration.tried, ())

    def _other(self, question: contract.WhatIfQuestion) -> Configuration | None:
        """Return the configuration of the question, or None. Errors: InvalidInput."""
        if question.settings:
            return self._reconfiguration.tried(question.settings, question.config)
        return None if question.config is None else self._reconfiguration.read(question.config)

    async def _twins(
        self, question: contract.WhatIfQuestion, new: Configuration | None
    ) -> ComparedPools:
        """Freeze the inputs of both pools at one instant."""
        async with self._ledger.lock:
            now, seen = self._observed.settings.clock.now(), self._observed.now
            await self._state_cache.follow()
            before = await self._state_cache.snapshot(now) or snapshots.snapshot(
                self._ledger, seen, now
            )
            if new is None:
                return ComparedPools(before, question, None)
            other = seen.with_configuration(new).as_of(_begin(seen, new, now))
            other = replace(other, hours=self._hours.monthly(other.configuration))
            names = self._ledger.counters.projects()
            homes = snapshots.homes(other, names)
            entries = (self._ledger.counters.entry(job) for job in self._state_cache.quarantined)
            blocked = frozenset(gpu for entry in entries if entry is not None for gpu in entry.gpus)
            settings = OtherSettings(
                node_inputs=node_inputs.node_inputs(self._ledger, other, blocked),
                projects=snapshots.projects(other, homes.values()),
                policy=new.policy,
                moved={
                    was: homes[name]
                    for name, was in snapshots.homes(seen, names).items()
                    if was != homes[name]
                },
                hours={
                    JobId(it.id): (
                        other.hours.blocks(it, other.configuration),
                        it.user in other.hours.standing.behind,
                    )
                    for it in self._ledger.live()
                },
            )
        return ComparedPools(before, question, settings)

    async def _past(self, question: contract.WhatIfQuestion) -> History | None:
        """Return the jobs to replay, or None if no replay is requested.

        Errors: InvalidInput if there are none.
        """
        if question.history_days is None:
            return None
        found = await self._history.of(question.history_days)
        if not found.jobs:
            raise InvalidInput(
                f"No job ran and ended in the last {count(question.history_days, 'day')}, so there "
                "is no history to replay. Use more days, or leave the history out.",
                field="history_days",
                numbers={"days": question.history_days},
            )
        return found

    def _answer(
        self,
        found: whatif.Comparison,
        change: contract.ConfigurationChange,
        replayed: Replayed | None,
    ) -> contract.WhatIf:
        jobs = [self._job(it) for it in found.changed[:MOST_JOBS]]
        before, after = (
            contract.PoolGpus(found.gpus[side], found.allocated[side]) for side in (0, 1)
        )
        return contract.WhatIf(
            text=sentence(found),
            before=before,
            after=after,
            projects=[_project(it) for it in found.projects],
            jobs=jobs,
            jobs_left_out=len(found.changed) - len(jobs),
            changes=change.changes,
            warnings=change.warnings,
            history=None if replayed is None else workloads.answer(replayed),
            people=affected_users(found.changed),
        )

    def _job(self, change: whatif.JobComparison) -> contract.JobWhatIf:
        # A job may have been removed by age while the passes ran.
        record = self._ledger.job(change.job.id)
        return contract.JobWhatIf(
            id=str(change.job.id),
            name="" if record is None else record.name,
            project=str(change.job.project),
            user=change.job.user or "",
            gpus=change.job.spec.gpus * change.job.spec.workers,
            before=_job_now(change.before),
            after=_job_now(change.after),
        )


def affected_users(changed: Sequence[whatif.JobComparison]) -> list[str]:
    """Return a sentence for each user whose jobs the change would affect."""
    found: dict[str, list[whatif.JobComparison]] = {}
    for one in changed:
        found.setdefault(one.job.user or "an unknown user", []).append(one)
    return [f"{user} {_listed(_fates(jobs))}." for user, jobs in sorted(found.items())]


def _listed(parts: Sequence[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _fates(jobs: Sequence[whatif.JobComparison]) -> list[str]:
    """Return the effects on one user's jobs, as parts of a sentence."""
    waits = whatif.Fate.WAITS
    starts = [it for it in jobs if it.before.fate is waits and it.after.fate is not waits]
    others = [it for it in jobs if it not in starts]
    gives = sum(max(0, it.before.gpus - it.after.gpus) for it in others)
    gets = sum(max(0, it.after.gpus - it.before.gpus) for it in others)
    lost_s = sum(it.after.lost_gpu_s for it in others if it.after.preempted)
    parts = []
    if starts:
        gpus = count(sum(it.after.gpus for it in starts), "GPU")
        parts.append(f"starts {count(len(starts), 'job')} now, with {gpus}")
    if gives:
        cost = f" (and work of {gpu_time(lost_s)})" if lost_s >= 180 else ""
        parts.append(f"loses {count(gives, 'GPU')}{cost}")
    if gets:
        parts.append(f"keeps or gets {count(gets, 'GPU')} more")
    return parts or [f"has other GPUs for {count(len(jobs), 'job')}"]


def _side(pool: Snapshot, configuration: Configuration, past: History) -> Side:
    budgets = configuration.hour_budgets.from_zero(past.begun)
    return Side(pool.nodes, pool.projects, pool.policy, budgets)


def sentence(found: whatif.Comparison) -> str:
    """Return the immediate effects in one sentence.

    >>> sentence(whatif.Comparison((8, 8), (4, 4), (), ()))
    'Nothing would change now: the same jobs would run and wait, on 4 of 8 GPUs.'
    """
    held = f"{found.allocated[1]} of {found.gpus[1]} GPUs"
    was = f"{found.allocated[0]} of {found.gpus[0]}"
    if not found.changed:
        held = held if found.gpus[0] == found.gpus[1] else f"{held} instead of {was}"
        return f"Nothing would change now: the same jobs would run and wait, on {held}."
    return f"Now {_listed(list(_parts(found)))}; jobs would hold {held} instead of {was}."


def _parts(found: whatif.Comparison) -> Iterator[str]:
    waits = whatif.Fate.WAITS
    jobs = found.changed
    starts = [it for it in jobs if it.before.fate is waits and it.after.fate is not waits]
    pays = [it for it in jobs if it.after.preempted and not it.before.preempted]
    stays = [it for it in jobs if it.before.fate is not waits and it.after.fate is waits]
    if starts:
        yield f"{count(len(starts), 'waiting job')} would run"
    if pays:
        lost = sum(it.after.lost_gpu_s for it in pays)
        yield f"{count(len(pays), 'job')} would be paused or shrunk at a loss of {gpu_time(lost)}"
    others = [
        (sum(it not in pays for it in stays), "job", "would wait instead of starting"),
        (
            sum(it.before.preempted and not it.after.preempted for it in jobs),
            "job",
            "would not be paused or shrunk",
        ),
        (sum(it.after.moved and not it.before.moved for it in jobs), "job", "would move"),
    ]
    clauses = [f"{count(number, noun)} {would}" for number, noun, would in others if number]
    yield from clauses
    if not (starts or pays or clauses):
        yield f"{count(len(jobs), 'job')} would have other GPUs"


def _job_now(now: whatif.JobFate) -> contract.JobNow:
    return contract.JobNow(
        state=now.fate.value,
        gpus=now.gpus,
        workers=now.workers,
        preempted=now.preempted,
        moved=now.moved,
        lost_gpu_s=round(now.lost_gpu_s, 1),
        over_quota=now.over_quota,
        reason=None if now.reason is None else job_reasons.from_core(now.reason),
    )


def _project(change: whatif.ProjectFateChange) -> contract.ProjectWhatIf:
    return contract.ProjectWhatIf(
        name=str(change.name),
        before=None if change.before is None else _project_now(change.before),
        after=None if change.after is None else _project_now(change.after),
    )


def _project_now(now: whatif.ProjectFate) -> contract.ProjectNow:
    return contract.ProjectNow(
        quota=now.quota,
        limit=now.limit,
        fair_share=now.fair_share,
        allocated=now.allocated,
        running=now.running,
        waiting=now.waiting,
        waiting_gpus=now.waiting_gpus,
        preempted=now.preempted,
        lost_gpu_s=round(now.lost_gpu_s, 1),
    )
