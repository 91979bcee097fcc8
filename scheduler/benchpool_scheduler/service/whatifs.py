"""What if: the pool of this moment with another configuration or more GPUs.

Both pools are frozen snapshots of one instant; the passes over them run beside the service's loop
and change nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

from benchpool_scheduler import contract, contract_whatif
from benchpool_scheduler.core import whatif
from benchpool_scheduler.core.expansion import with_nodes
from benchpool_scheduler.core.model import Snapshot
from benchpool_scheduler.core.sentences import count
from benchpool_scheduler.errors import InvalidInput, TooMany
from benchpool_scheduler.service import reasons, snapshots, workloads
from benchpool_scheduler.service.history import History, history
from benchpool_scheduler.service.ledger import Ledger
from benchpool_scheduler.service.reconfiguration import Reconfiguration
from benchpool_scheduler.service.site import Site
from benchpool_scheduler.simulation.whatif import Replayed, Side, replay_both

MOST_JOBS = 1000
"""Most jobs of one answer."""


class WhatIfs:
    """Answers what would be otherwise."""

    def __init__(self, ledger: Ledger, site: Site, reconfiguration: Reconfiguration) -> None:
        self._ledger = ledger
        self._site = site
        self._reconfiguration = reconfiguration
        self._busy = asyncio.Lock()

    async def ask(self, question: contract_whatif.WhatIfQuestion) -> contract_whatif.WhatIf:
        """Say who would run, wait and pay now.

        Errors: InvalidInput for a question without a difference or a configuration that does not
        hold, TooMany while another question is being answered.
        """
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
            before, after = self._pools(question)
            past = self._past(question)
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
                else self._reconfiguration.check(question.config)
            )
            return self._answer(found, change, replayed)

    def _pools(self, question: contract_whatif.WhatIfQuestion) -> tuple[Snapshot, Snapshot]:
        """Return the pool as it is and as it would be, at one instant."""
        now, site = self._site.clock.now(), self._site
        before = snapshots.snapshot(self._ledger, site, now)
        if question.config is not None:
            new = self._reconfiguration.read(question.config)
            site = replace(site, configuration=new)
        after = snapshots.snapshot(self._ledger, site, now)
        grown = with_nodes(after, question.more_gpus, question.gpu_model, question.gpus_per_node)
        return before, grown

    def _past(self, question: contract_whatif.WhatIfQuestion) -> History | None:
        """Return the jobs to replay, None when nobody asks. Errors: InvalidInput for none."""
        if question.history_days is None:
            return None
        restart_s = self._site.configuration.policy.restart_s
        found = history(self._ledger, self._site.clock.now(), question.history_days, restart_s)
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
    ) -> contract_whatif.WhatIf:
        jobs = [self._job(it) for it in found.changed[:MOST_JOBS]]
        before, after = (
            contract_whatif.PoolGpus(found.gpus[side], found.allocated[side]) for side in (0, 1)
        )
        return contract_whatif.WhatIf(
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

    def _job(self, change: whatif.JobChange) -> contract_whatif.JobWhatIf:
        # A job may have been removed by age while the passes ran.
        record = self._ledger.job(change.job.id)
        return contract_whatif.JobWhatIf(
            id=str(change.job.id),
            name="" if record is None else record.name,
            project=str(change.job.project),
            user=change.job.user or "",
            gpus=change.job.gpus * change.job.workers,
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
    return f"Now {', '.join(_parts(found))}; jobs would hold {held} instead of {was}."


def _parts(found: whatif.Comparison) -> Iterator[str]:
    waits = whatif.Fate.WAITS
    start = [it for it in found.changed if it.before.fate is waits and it.after.fate is not waits]
    stop = [it for it in found.changed if it.before.fate is not waits and it.after.fate is waits]
    pay = [it for it in found.changed if it.after.preempted and not it.before.preempted]
    spared = [it for it in found.changed if it.before.preempted and not it.after.preempted]
    if start:
        yield f"{count(len(start), 'waiting job')} would run"
    if stop:
        yield f"{count(len(stop), 'job')} would wait instead of running"
    if pay:
        lost = sum(it.after.lost_gpu_s for it in pay)
        yield f"{count(len(pay), 'job')} would be paused or shrunk, at a loss of {lost:.0f} GPU s"
    if spared:
        yield f"{count(len(spared), 'job')} would be spared"
    if not (start or stop or pay or spared):
        yield f"{count(len(found.changed), 'job')} would have other GPUs"


def _job_now(now: whatif.JobNow) -> contract_whatif.JobNow:
    return contract_whatif.JobNow(
        state=now.fate.value,
        gpus=now.gpus,
        workers=now.workers,
        preempted=now.preempted,
        moved=now.moved,
        lost_gpu_s=round(now.lost_gpu_s, 1),
        over_quota=now.over_quota,
        reason=None if now.reason is None else reasons.from_core(now.reason),
    )


def _project(change: whatif.ProjectChange) -> contract_whatif.ProjectWhatIf:
    return contract_whatif.ProjectWhatIf(
        name=str(change.name),
        before=None if change.before is None else _project_now(change.before),
        after=None if change.after is None else _project_now(change.after),
    )


def _project_now(now: whatif.ProjectNow) -> contract_whatif.ProjectNow:
    return contract_whatif.ProjectNow(
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
