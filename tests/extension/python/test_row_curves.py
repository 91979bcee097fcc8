"""Curves of the reported metrics in the row of a job, as plain text."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import benchpool
from benchpool.display import Row
from benchpool.row_curves import AGAIN_S, CurvePace, curve_line
from benchpool_scheduler.contract import JobMetrics, MetricsQuery
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


def test_curves_are_polled_on_reports_and_at_end() -> None:
    pace, silent = CurvePace(), staged_job("train", submitted=datetime.now(UTC))
    first = staged_job("train", metrics={"loss": 1.0})
    second = staged_job("train", metrics={"loss": 0.5})
    assert not pace.due(silent, 0.0, over=False)
    asked = [pace.due(it, at, over=False) for at, it in ((10, first), (11, second), (20, second))]
    assert asked == [True, False, True]
    assert not pace.due(second, 20 + 2 * AGAIN_S, over=False), "nothing new"
    ended = staged_job("train")
    assert pace.due(ended, 20.5, over=True)
    assert not pace.due(ended, 40.0, over=True)
