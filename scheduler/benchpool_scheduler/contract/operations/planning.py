"""The operations of planning: what if, the recorded history, and where GPU-hours went."""

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
"""A report over a year goes through all intervals and samples of it."""

WHATIF_S = 600.0
"""A what-if over a long history replays all of its jobs, twice."""


class PlanningOperations:
    """What would be otherwise with another configuration or more GPUs."""

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
        """Say who would run, wait and pay with another benchpool.yaml or more GPUs."""
        return given(question)

    @operation("GET", "history", bytes, who=Who.ADMIN, query=HistoryQuery, gives=Media.CSV)
    def history(self, days: float) -> Given:
        """Read what ran and ended as a trace to replay.

        From the last ``days``; CSV.
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
        """Read where the GPU-hours of a range of time went.

        Of all GPUs for administrators, of their projects for leads, of oneself for others. The
        last 30 days by default; jobs that reach over the edge of the range are cut to it.
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
        """Say how many GPUs would have been enough, and for static shares.

        The jobs that ran and ended lately are replayed in pools of several sizes.
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
            "Say what would have been free if idle benches had been given back.",
            "It goes through what was measured and changes nothing. The times are those of "
            "`idle_benches`, and its exemptions are listed with their end. For administrators.",
        ),
        tool=True,
    )
    def idle_benches(self, *, days: float = 28, minutes: float | None = None) -> Given:
        """Say what a rule for idle benches would have freed, and from whom.

        What was measured is gone through; nothing is given back. The times are those of the
        configuration but for ``minutes``; whom an exemption spares is left out.
        """
        return given(
            query={"days": days, "minutes": minutes},
            takes_s=REPORT_S,
        )
