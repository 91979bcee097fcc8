"""What if: the pool of this moment with another configuration or more GPUs.

Both pools are frozen snapshots of one instant; the passes over them run beside the service's loop
and change nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from benchpool_scheduler import contract
from benchpool_scheduler.core.model import Policy, Project, ProjectName, Snapshot
from benchpool_scheduler.core.whatif import whatif
from benchpool_scheduler.core.whatif.expansion import with_nodes
from benchpool_scheduler.errors import InvalidInput, TooMany
from benchpool_scheduler.phrases import count
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration import workloads
from benchpool_scheduler.service.administration.history import History, history
from benchpool_scheduler.service.administration.reconfiguration import Reconfiguration
from benchpool_scheduler.service.cluster_state import node_inputs, snapshots
from benchpool_scheduler.service.cluster_state.node_inputs import NodeInputs
from benchpool_scheduler.service.cluster_state.state_cache import StateCache
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.lifecycle import job_reasons
from benchpool_scheduler.service.observed.observed import Observed
from benchpool_scheduler.simulation.whatif import Replayed, Side, replay_both

MOST_JOBS = 1000
"""Most jobs of one answer."""


@dataclass(frozen=True, slots=True)
class OtherSettings:
    """What another configuration makes of the pool.

    Attributes:
        moved: Jobs of these projects of the core are in others then.
    """

    node_inputs: NodeInputs
    projects: tuple[Project, ...]
    policy: Policy
    moved: Mapping[ProjectName, ProjectName]


@dataclass(frozen=True, slots=True)
class Twins:
    """The pool as it is, and what makes its twin: plain data, for another thread."""

    before: Snapshot
    question: contract.WhatIfQuestion
    settings: OtherSettings | None

    def after(self) -> Snapshot:
        """Return the pool as it would be."""
        pool, asked, settings = self.before, self.question, self.settings
        if settings is not None:
            moved = settings.moved
            pool = replace(
                pool,
                nodes=node_inputs.nodes(settings.node_inputs),
                projects=settings.projects,
                policy=settings.policy,
                jobs=tuple(
                    replace(job, project=moved[job.project]) if job.project in moved else job
                    for job in pool.jobs
                ),
            )
        return with_nodes(pool, asked.more_gpus, asked.gpu_model, asked.gpus_per_node)


class WhatIfs:
    """Answers what would be otherwise."""

    def __init__(
        self,
        ledger: Ledger,
        observed: Observed,
        state_cache: StateCache,
        reconfiguration: Reconfiguration,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._state_cache = state_cache
        self._reconfiguration = reconfiguration
        self._busy = asyncio.Lock()

    async def ask(self, caller: Caller, question: contract.WhatIfQuestion) -> contract.WhatIf:
        """Say who would run, wait and pay now with another configuration or more GPUs.

        Errors: Forbidden for others than administrators, InvalidInput for a question without a
        difference or a configuration that does not hold, TooMany while another question is being
        answered.
        """
        rights.require_admin(caller, "ask what if")
        if question.config is None and not question.more_gpus:
            raise InvalidInput(
                "Nothing would be otherwise: name a configuration, more GPUs, or both.",
                field="config",
            )
        if self._busy.locked():
            raise TooMany(
                "Another what-if is being answered, and one at a time is the limit: ask again in a "
                "moment.",
                code="whatif-busy",
            )
        async with self._busy:
            twins = await self._twins(question)
            past = await self._past(question)
            after = await asyncio.to_thread(twins.after)
            before = twins.before
            found = await asyncio.to_thread(whatif.compare, before, after)
            replayed = (
                None
                if past is None
                else await asyncio.to_thread(
                    replay_both, past.jobs, _side(before), _side(after), past.costs
                )
            )
            change = (
                contract.ConfigurationChange(applied=False, changes=[])
                if question.config is None
                else self._reconfiguration.difference(question.config)
            )
            return self._answer(found, change, replayed)

    async def _twins(self, question: contract.WhatIfQuestion) -> Twins:
        """Freeze what both pools are made of, at one instant."""
        new = None if question.config is None else self._reconfiguration.read(question.config)
        async with self._ledger.lock:
            now, seen = self._observed.settings.clock.now(), self._observed.now
            await self._state_cache.follow()
            before = await self._state_cache.snapshot(now) or snapshots.snapshot(
                self._ledger, seen, now
            )
            if new is None:
                return Twins(before, question, None)
            other = seen.with_configuration(new)
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
            )
        return Twins(before, question, settings)

    async def _past(self, question: contract.WhatIfQuestion) -> History | None:
        """Return the jobs to replay, None when nobody asks. Errors: InvalidInput for none."""
        if question.history_days is None:
            return None
        restart_s = self._observed.now.configuration.policy.restart_s
        now = self._observed.settings.clock.now()
        found = await history(self._ledger, now, question.history_days, restart_s)
        if not found.jobs:
            raise InvalidInput(
                f"No job ran and ended in the last {question.history_days:g} days, so there is no "
                "history to replay: name more days, or leave the history out.",
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


def _side(pool: Snapshot) -> Side:
    return Side(pool.nodes, pool.projects, pool.policy)


def sentence(found: whatif.Comparison) -> str:
    """Return in one sentence what would be otherwise now.

    >>> sentence(whatif.Comparison((8, 8), (4, 4), (), ()))
    'Now nothing would be otherwise: the same jobs would run and wait, on 4 of 8 GPUs.'
    """
    held = f"{found.allocated[1]} of {found.gpus[1]} GPUs"
    if not found.changed:
        return f"Now nothing would be otherwise: the same jobs would run and wait, on {held}."
    was = f"{found.allocated[0]} of {found.gpus[0]}"
    first, *rest = _parts(found)
    parts = f"{', '.join([first, *rest[:-1]])} and {rest[-1]}" if rest else first
    return f"Now {parts}; jobs would hold {held} instead of {was}."


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
        yield f"{count(len(pays), 'job')} would be paused or shrunk at a loss of {lost:.0f} GPU s"
    others = [
        (sum(it not in pays for it in stays), "job", "would wait instead of starting"),
        (
            sum(it.before.preempted and not it.after.preempted for it in jobs),
            "job",
            "would not pay",
        ),
        (sum(it.after.moved and not it.before.moved for it in jobs), "job", "would move"),
    ]
    told = [f"{count(number, noun)} {would}" for number, noun, would in others if number]
    yield from told
    if not (starts or pays or told):
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
