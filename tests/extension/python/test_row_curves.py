"""Curves of the reported metrics in the row of a job, as plain text."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import benchpool
from benchpool.display import Row
from benchpool.row_curves import CurvePace, curve_line
from benchpool_scheduler.contract import Job, JobMetrics, MetricsQuery, State
from benchpool_scheduler.curves.points import Reported
from benchpool_scheduler.curves.series import MetricReport, remade
from benchpool_scheduler.curves.views import answer
from benchpool_support.stage import job as staged_job


def test_row_shows_reported_metrics(susan: Path) -> None:
    script = "import benchpool\nfor step in range(20): benchpool.log(loss=20 - step, step=step)\n"
    (susan / "train.py").write_text(script)
    row = Row(benchpool.submit("train.py"))
    done = threading.Event()

    def look(_change: object) -> None:
        if "loss 1 " in row.curves.value:
            done.set()

    row.curves.observe(look, "value")
    look(None)
    assert done.wait(60)
    assert row.curves.value.startswith("loss 1 █")
    assert row.curves.layout.display is None


def metrics(*names: str) -> JobMetrics:
    values = tuple((name, Reported(float(at), at, at)) for name in names for at in range(3))
    return answer("abcd", "train", remade([MetricReport(1, values)]), MetricsQuery())


def test_curve_line_shows_first_names_and_count_of_rest() -> None:
    assert curve_line(metrics("loss")) == "loss 2 ▁▅█"
    assert curve_line(metrics("a", "b", "c", "d", "e")).endswith("c 2 ▁▅█   and 2 more")


def test_curve_line_shows_number_that_became_nan() -> None:
    values = (("loss", Reported(1.0, 1, 1)), ("loss", Reported(None, 2, 2)))
    lines = remade([MetricReport(1, values)])
    assert curve_line(answer("abcd", "train", lines, MetricsQuery())) == "loss no number ▁×"


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ENDED = staged_job("train", State.SUCCEEDED)


def reports(at_s: int, **metrics: float) -> Job:
    """Return a job whose newest report arrived at a time."""
    updated = NOON + timedelta(seconds=at_s)
    return staged_job("train", State.RUNNING, metrics=metrics, metrics_updated=updated)


def test_any_report_and_end_are_news() -> None:
    pace, silent = CurvePace(), staged_job("train", State.RUNNING)
    of_old_service = staged_job("train", State.RUNNING, metrics={"loss": 0.25})
    seen = [silent, reports(1), reports(1), reports(2), reports(3, loss=1.0), silent]
    assert [pace.see(it) for it in seen] == [False, True, False, True, True, False]
    assert pace.see(of_old_service)
    assert pace.see(ENDED)


def test_metrics_are_read_after_last_report_and_end() -> None:
    pace, turns = CurvePace(again_s=0.0), list[None]()
    reader = threading.Thread(target=lambda: turns.extend(pace.turns()), daemon=True)
    pace.see(reports(1))
    it = pace.turns()
    next(it)
    pace.see(reports(2))
    pace.see(reports(3))
    next(it)
    reader.start()
    pace.see(ENDED)
    reader.join(60)
    assert len(turns) == 1
