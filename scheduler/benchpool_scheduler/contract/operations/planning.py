"""Operations for planning: what-if, the recorded history, and reports of GPU-hours."""

from __future__ import annotations

from datetime import datetime

from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.operation import MIB, Given, Media, Who, given, operation
from benchpool_scheduler.contract.use import (
    EnoughGpus,
    EnoughQuery,
    IdleBenches,
    IdleBenchesQuery,
    UseBy,
    UseQuery,
    UseReport,
)
from benchpool_scheduler.contract.whatif import HistoryQuery, WhatIf, WhatIfQuestion

REPORT_S = 120.0
"""Timeout for a report, in seconds. A year's report reads all of its intervals and samples."""

WHATIF_S = 600.0
"""Timeout for a what-if, in seconds. A long history is replayed twice."""


class PlanningOperations:
    """Forecasts with another configuration or more GPUs, and reports on past use."""

    @operation(
        "POST",
        "whatif",
        WhatIf,
        who=Who.ADMIN,
        body=WhatIfQuestion,
        max_body=2 * MIB,
        takes_s=WHATIF_S,
        changes=False,
        tool=True,
    )
    def whatif(self, question: WhatIfQuestion) -> Given:
        """Predict which jobs and projects gain or lose with another benchpool.yaml or more GPUs."""
        return given(question)

    @operation("GET", "history", bytes, who=Who.ADMIN, query=HistoryQuery, gives=Media.CSV)
    def history(self, days: float) -> Given:
        """Read past jobs as a trace to replay.

        Jobs that ran and ended in the last ``days``, as CSV.
        """
        return given(query={"days": days})

    @operation("GET", "report", UseReport, query=UseQuery, takes_s=REPORT_S, tool=True)
    def report(
        self,
        *,
        by: UseBy = UseBy.PROJECT,
        begin: datetime | None = None,
        end: datetime | None = None,
        month: str | None = None,
    ) -> Given:
        """Report the GPU-hours of a time range.

        Administrators see all GPUs, leads those of their projects, and other users their own. The
        default is the last 30 days. Jobs that cross the edge of the range are cut to it.
        """
        query = {"by": by.value, "begin": begin, "end": end, "month": month}
        return given(query=query, takes_s=REPORT_S)

    @operation(
        "GET",
        "report/enough",
        EnoughGpus,
        who=Who.ADMIN,
        query=EnoughQuery,
        takes_s=WHATIF_S,
        tool=True,
    )
    def enough(self, *, days: float = 30, wait_s: float = 600) -> Given:
        """Compute how many GPUs would have been enough, with and without static shares.

        The recent jobs are replayed in pools of several sizes.
        """
        return given(query={"days": days, "wait_s": wait_s}, takes_s=WHATIF_S)

    @operation(
        "GET",
        "report/idle-benches",
        IdleBenches,
        who=Who.ADMIN,
        query=IdleBenchesQuery,
        takes_s=REPORT_S,
        verb=PlainVerb(
            ("idle-benches",),
            "Show the GPU-hours that a rule for idle benches would have freed.",
            "It evaluates past measurements and changes nothing. The times are those of "
            "`idle_benches`, and its exemptions are listed with their end. For administrators.",
        ),
        tool=True,
    )
    def idle_benches(self, *, days: float = 28, minutes: float | None = None) -> Given:
        """Report what a rule for idle benches would have released, and from which users.

        It evaluates past measurements and releases nothing. The times are those of the
        configuration, except ``minutes``. Exempt users and servers are left out.
        """
        return given(
            query={"days": days, "minutes": minutes},
            takes_s=REPORT_S,
        )
