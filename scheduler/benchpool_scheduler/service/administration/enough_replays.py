"""Number of GPUs that would have been enough for the recent jobs, in one pool and in static
shares.
"""

from __future__ import annotations

import asyncio

from benchpool_scheduler import phrases
from benchpool_scheduler.contract.use import EnoughGpus, EnoughQuery, EnoughShare
from benchpool_scheduler.errors import InvalidInput, TooMany
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration.history import RecordedHistory
from benchpool_scheduler.service.benches import bench_reserve
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.simulation.enough import Enough, enough
from benchpool_scheduler.simulation.replay.refusals import Accepted, accepted


class EnoughReplays:
    """Replays of the recorded history in pools of several sizes, one query at a time."""

    def __init__(self, observed: SchedulerState, history: RecordedHistory) -> None:
        self._observed = observed
        self._history = history
        self._busy = asyncio.Lock()

    async def ask(self, caller: Caller, query: EnoughQuery) -> EnoughGpus:
        """Return how many GPUs would have been enough.

        Errors: Forbidden for non-administrators; InvalidInput without a history; TooMany while
        another query is being answered.
        """
        rights.require_admin(caller, "ask how many GPUs would have been enough")
        if self._busy.locked():
            raise TooMany(
                "Another replay of the history is running, and only one runs at a time. Try "
                "again in a moment.",
                code="replay-busy",
            )
        days = phrases.count(query.days, "day")
        async with self._busy:
            past = await self._history.of(query.days)
            if not past.jobs:
                raise InvalidInput(
                    f"No job ran and ended in the last {days}, so there is no history "
                    "to replay. Use more days.",
                    field="days",
                    numbers={"days": query.days},
                )
            seen = self._observed.now
            budgets = seen.configuration.hour_budgets.from_zero(past.begun)
            let_in = await asyncio.to_thread(accepted, past.jobs, budgets)
            if not let_in.jobs:
                raise InvalidInput(
                    f"Every job of the last {days} belongs to a user or project with "
                    "a budget of 0 GPU-hours, so none could have run. Raise a budget.",
                    field="days",
                )
            present = bench_reserve.guaranteed_gpus(seen)
            quotas = {
                str(it.name): present if it.project.quota is None else it.project.quota
                for it in seen.configuration.projects
            }
            found = await asyncio.to_thread(
                enough, let_in.jobs, quotas, seen.configuration.policy, past.costs, query.wait_s
            )
        return _answer(found, query, let_in, present)


def _answer(found: Enough, query: EnoughQuery, let_in: Accepted, present: int) -> EnoughGpus:
    jobs = len(let_in.jobs)
    static = sum(found.static.values())
    ranked = sorted(found.static.items(), key=lambda row: (-row[1], row[0]))
    return EnoughGpus(
        text=(
            f"For the {phrases.count(jobs, 'job')} of the last {phrases.count(query.days, 'day')} "
            f"{phrases.count(found.pool, 'GPU')} in one pool would have been enough; static shares "
            f"would have needed {static}. The pool has {present} for training."
            f"{_held_back(let_in)}"
        ),
        jobs=jobs,
        wait_s=query.wait_s,
        gpus=found.pool,
        static_gpus=static,
        present_gpus=present,
        projects=[EnoughShare(name, gpus) for name, gpus in ranked],
        refused=let_in.refused,
        left_out=let_in.never,
    )


def _held_back(let_in: Accepted) -> str:
    """Return the effect of GPU-hour budgets in sentences; empty if there is none.

    >>> _held_back(Accepted((), refused=2))
    ' Budgets of GPU-hours would refuse 2 of them until the next month: waits count from then.'
    >>> _held_back(Accepted((), never=1))
    ' Left out: 1 job more, under a budget of 0 GPU-hours.'
    """
    parts = [""]
    if let_in.refused:
        parts.append(
            f"Budgets of GPU-hours would refuse {let_in.refused} of them until the next month: "
            "waits count from then."
        )
    if let_in.never:
        more = phrases.count(let_in.never, "job")
        parts.append(f"Left out: {more} more, under a budget of 0 GPU-hours.")
    return " ".join(parts)
