"""The report of use and waste: GPU-hours of a range of time, as a page and for download."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import urlencode

import msgspec

from benchpool_scheduler.accounting.tables import as_csv
from benchpool_scheduler.api import decoding
from benchpool_scheduler.contract.use import (
    EnoughGpus,
    EnoughQuery,
    IdleBenches,
    IdleBenchesQuery,
    UseBy,
    UseQuery,
    UseReport,
)
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.phrases import gpu_hours
from benchpool_scheduler.service import Caller
from benchpool_scheduler.web import report_view
from benchpool_scheduler.web.pages import PageHandler

PERIODS: Mapping[str, str] = {
    "1": "last 24 hours",
    "7": "last 7 days",
    "30": "last 30 days",
    "90": "last 90 days",
    "365": "last 365 days",
}
ENOUGH_DAYS = 30
IDLE_MINUTES = 60
MONTHS = 12
"""Number of months to choose from, the present one first."""


class ReportHandler(PageHandler):
    """``GET <prefix>report?period=30&by=project``; ``period`` is days, or a month."""

    async def get(self) -> None:
        """Show the page."""
        found, period = await self._ask()
        months = self._months()
        chosen = {"period": period, "by": found.by.value}
        await self.show(
            "report.html",
            self.facts(back="report"),
            report=found,
            period=period,
            periods={**PERIODS, **{month: month for month in months}},
            choices=[one.value for one in UseBy],
            classes=report_view.classes(found.total),
            whole=report_view.whole(found.total),
            bars=report_view.bars(found),
            rows=report_view.rows(found),
            asked=urlencode(chosen),
            typed=_typed(period, found.by),
            hours=gpu_hours,
            **await self._enough(),
            **await self._idle(),
        )

    async def _ask(self) -> tuple[UseReport, str]:
        """Return the requested report, and its period as chosen.

        Errors: InvalidInput for an unknown range or division.
        """
        caller = await self.reader()
        period = self.get_query_argument("period", "30").strip()[:16]
        given = {"by": [self.get_query_argument("by", UseBy.PROJECT.value)[:16]]}
        if period in PERIODS:
            begin = self.site.now() - timedelta(days=int(period))
            given["begin"] = [begin.isoformat()]
        else:
            given["month"] = [period]
        query = decoding.query(given, UseQuery)
        return await self.site.pool.use.report(caller, query), period

    async def _enough(self) -> dict[str, EnoughGpus | str | None]:
        """If requested, return the sufficient number of GPUs, or an error message."""
        caller: Caller | None = self.caller
        days = self.get_query_argument("enough", "").strip()[:16]
        values: dict[str, EnoughGpus | str | None] = {"enough": None, "enough_wrong": ""}
        values["enough_days"] = str(ENOUGH_DAYS)
        if caller is None or not days:
            return values
        try:
            query = decoding.query({"days": [days]}, EnoughQuery)
            found = await self.site.pool.use.enough(caller, query)
        except BenchpoolError as refused:
            return {**values, "enough_wrong": refused.message}
        return {**values, "enough": found, "enough_days": days}

    async def _idle(self) -> dict[str, IdleBenches | str | None]:
        """If requested, return the GPUs that idle benches would have freed, or an error message."""
        caller: Caller | None = self.caller
        minutes = self.get_query_argument("idle", "").strip()[:16]
        values: dict[str, IdleBenches | str | None] = {"idle": None, "idle_wrong": ""}
        values["idle_minutes"] = str(IDLE_MINUTES)
        if caller is None or not minutes:
            return values
        try:
            query = decoding.query({"minutes": [minutes]}, IdleBenchesQuery)
            found = await self.site.pool.use.idle_benches(caller, query)
        except BenchpoolError as refused:
            return {**values, "idle_wrong": refused.message}
        return {**values, "idle": found, "idle_minutes": minutes}

    def _months(self) -> list[str]:
        now = self.site.today()
        first = now.year * 12 + now.month - 1
        return [f"{month // 12}-{month % 12 + 1:02}" for month in range(first, first - MONTHS, -1)]


class ReportFileHandler(ReportHandler):
    """``GET <prefix>report.csv``, ``report.json``: the same for download."""

    async def get(self, kind: str) -> None:  # type: ignore[override]
        """Send the file."""
        found, period = await self._ask()
        name = f"benchpool-use-{found.by.value}-{period}.{kind}"
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.set_header("Content-Type", FILES[kind])
        await self.finish(
            as_csv(found) if kind == "csv" else msgspec.json.format(msgspec.json.encode(found))
        )


FILES: Mapping[str, str] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
}


def _typed(period: str, by: UseBy) -> str:
    """Return the equivalent terminal command."""
    span = f"--from {period}d" if period in PERIODS else f"--month {period}"
    return f"benchpool report {span} --by {by.value}"
