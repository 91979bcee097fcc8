"""Answers about the curves of jobs, computed once for all who ask between two reports."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from benchpool_scheduler.contract import JobMetrics, MetricsQuery
from benchpool_scheduler.curves.series import Lines
from benchpool_scheduler.curves.views import answer

MOST = 16
"""Maximum number of answers in memory."""


class CurveAnswers:
    """The newest answers.

    All who watch a job are notified of a report at the same time, and ask at the same time.
    """

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[str, str, MetricsQuery], _Answer] = OrderedDict()

    async def of(self, job: str, name: str, lines: Lines, query: MetricsQuery) -> JobMetrics:
        """Return the curves of a job that a query selects."""
        key = (job, name, query)
        made = self._made.get(key)
        if made is None or made[0] is not lines:
            work = asyncio.to_thread(answer, job, name, lines, query)
            made = self._made[key] = (lines, asyncio.create_task(work))
        self._made.move_to_end(key)
        if len(self._made) > MOST:
            self._made.popitem(last=False)
        return await asyncio.shield(made[1])


_Answer = tuple[Lines, asyncio.Task[JobMetrics]]
"""Lines of a job, and the answer that is computed from them."""
