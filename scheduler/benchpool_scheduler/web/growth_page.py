"""The page on more GPUs: the pool's recorded jobs, replayed in a larger pool."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler import phrases
from benchpool_scheduler.contract import WhatIf, WhatIfQuestion
from benchpool_scheduler.contract.whatif import ReplayFigures, WorkloadWhatIf
from benchpool_scheduler.errors import BenchpoolError, TooMany
from benchpool_scheduler.service import Caller
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.benches import bench_reserve
from benchpool_scheduler.web.pages import PageHandler

DAYS = (7, 28, 90, 365)
LEAST_MOST = 8
"""Minimum of the slider's largest value, in GPUs."""
MOST = 100_000
BUSY_TRIES, BUSY_S = 20, 0.25


@dataclass(frozen=True, slots=True)
class GrowthRow:
    """One figure of both pools; ``why`` explains a worse value."""

    name: str
    before: str
    after: str
    why: str


class GrowthHandler(PageHandler):
    """``GET <prefix>growth?more=8&days=28``."""

    async def get(self) -> None:
        """Show the page. Errors: Forbidden for users who are not administrators."""
        caller = await self.reader()
        rights.require_admin(caller, "simulate more GPUs")
        gpus = bench_reserve.guaranteed_gpus(self.site.pool.observed.now)
        days = self._number("days", 28, DAYS[-1]) or 1
        more = self._number("more", 0, MOST)
        most = max(LEAST_MOST, 2 * gpus, more)
        found, wrong = (None, "") if more == 0 else await self._ask(caller, more, days)
        history = None if found is None else found.history
        await self.show(
            "growth.html",
            self.facts(back="growth"),
            gpus=gpus,
            more=more,
            most=most,
            days=days,
            choices=DAYS,
            found=found,
            wrong=wrong,
            history=history,
            rows=[] if history is None else figures(history),
            projects=[] if history is None else projects(history),
        )

    def _number(self, name: str, default: int, most: int) -> int:
        text = self.get_query_argument(name, "")
        usable = text.isascii() and text.isdecimal() and len(text) < 8
        return min(int(text), most) if usable else default

    async def _ask(self, caller: Caller, more: int, days: int) -> tuple[WhatIf | None, str]:
        question = WhatIfQuestion(more_gpus=more, history_days=float(days))
        try:
            for _ in range(BUSY_TRIES):
                try:
                    return await self.site.pool.whatifs.ask(caller, question), ""
                except TooMany:  # another administrator's replay is running
                    await asyncio.sleep(BUSY_S)
            return await self.site.pool.whatifs.ask(caller, question), ""
        except BenchpoolError as refused:
            return None, refused.message


def figures(history: WorkloadWhatIf) -> Sequence[GrowthRow]:
    """Return the figures of all jobs in both pools, in words."""
    pairs = zip(_named_values(history.before), _named_values(history.after), strict=True)
    return [
        GrowthRow(name, before, after, history.why.get(key, ""))
        for (key, name, before), (_, _, after) in pairs
    ]


def projects(history: WorkloadWhatIf) -> Sequence[GrowthRow]:
    """Return the waiting times of each project in both pools."""
    return [
        GrowthRow(
            one.name,
            phrases.duration(one.before.mean_wait_h * 3600),
            phrases.duration(one.after.mean_wait_h * 3600),
            one.why,
        )
        for one in history.projects
    ]


def _named_values(of: ReplayFigures) -> list[tuple[str, str, str]]:
    """Return key, name and value of each figure."""
    duration = phrases.duration
    return [
        ("gpus", "GPUs for training", str(of.gpus)),
        ("mean_wait_h", "Mean wait", duration(of.mean_wait_h * 3600)),
        ("p95_wait_h", "19 of 20 jobs wait less than", duration(of.p95_wait_h * 3600)),
        ("short_job_wait_min", "Mean wait of jobs under 1 h", duration(of.short_job_wait_min * 60)),
        ("mean_jct_h", "Mean time from submission to end", duration(of.mean_jct_h * 3600)),
        (
            "allocated_utilisation",
            "GPU time that jobs held",
            phrases.percent(of.allocated_utilisation),
        ),
        ("preemptions_per_job", "Pauses per 100 jobs", f"{of.preemptions_per_job * 100:.0f}"),
        ("lost_gpu_h", "Work lost by pauses", phrases.gpu_time(of.lost_gpu_h * 3600)),
    ]
