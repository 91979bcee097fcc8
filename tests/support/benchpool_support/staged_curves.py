"""Curves of jobs on a stage, set by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from benchpool_scheduler import contract
from benchpool_scheduler.curves.points import Reported
from benchpool_scheduler.curves.series import Lines, MetricReport, remade
from benchpool_scheduler.curves.views import answer
from benchpool_scheduler.service import Caller


@dataclass
class StagedCurves:
    """Curves of a staged pool; ``lines`` are the curves of each job."""

    lines: dict[str, Lines] = field(default_factory=dict)

    def detail(self, caller: Caller, job: str) -> contract.JobDetail:
        """Return a job.

        Raises:
            NotFound: There is no such job.
        """
        raise NotImplementedError

    async def metrics(
        self, caller: Caller, job: str, query: contract.MetricsQuery
    ) -> contract.JobMetrics:
        """Return the curves of a job."""
        found = self.detail(caller, job).job
        return answer(found.id, found.name, self.lines.get(found.id, {}), query)


def drawn_lines(scale: float = 1.0, steps: int = 200) -> Lines:
    """Return the loss of a job with one pause, an accuracy, and a norm with non-finite values."""

    def at(step: int) -> float:
        return scale * (2.0 / (1 + step / 40) + 0.05 * math.sin(step / 3))

    rolled_back = steps // 2
    first = tuple(("train/loss", Reported(at(it), it, it)) for it in range(rolled_back + 20))
    later = (("train/loss", Reported(at(it), it + 50, it)) for it in range(rolled_back, steps))
    more = tuple(("eval/acc", Reported(0.9 - at(it) / 3, it, it)) for it in range(0, steps, 20))
    bad = tuple(
        ("grad_norm", Reported(None if it > steps * 3 // 4 else 1.0 + it / 100, it, it))
        for it in range(steps)
    )
    return remade([MetricReport(1, first + more + bad), MetricReport(2, tuple(later))])
