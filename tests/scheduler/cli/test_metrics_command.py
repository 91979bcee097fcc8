"""``benchpool metrics`` and ``benchpool compare``: the reported metrics of jobs, side by side."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchpool_scheduler.cli import metric_following
from benchpool_scheduler.client import following
from benchpool_scheduler.contract import Curve, Job, JobMetrics, MetricPoint, MetricsQuery, State
from benchpool_scheduler.curves.comparison import ComparedRun, compared
from benchpool_scheduler.curves.parameters import arguments_of
from benchpool_scheduler.curves.points import Reported
from benchpool_scheduler.curves.series import MetricReport, remade
from benchpool_scheduler.curves.views import answer
from benchpool_support.stage import job
from benchpool_support.waiting import until

from .conftest import Benchpool

TRAIN = """
import sys, benchpool
rate = float(sys.argv[2])
for step in range(1, 21):
    benchpool.log({"train/loss": rate * 10 / step, "eval/acc": step * rate}, step=step)
benchpool.log(lr=rate)
"""


SLOW = """
import time, benchpool
from pathlib import Path
benchpool.log(loss=0.5, step=1)
while not Path({go!r}).exists():
    time.sleep(0.05)
benchpool.log(loss=0.25, acc=0.5, step=2)
"""


@pytest.fixture
def sent(benchpool: Benchpool, folder: Path) -> list[str]:
    """Two runs that have ended."""
    (folder / "train.py").write_text(TRAIN)
    words = ("submit", "--json", "--wait", "--tag", "try")
    return [benchpool(*words, "train.py", "--lr", rate).json["id"] for rate in ("0.1", "0.5")]


def test_curves_are_shown_as_table_picture_csv_and_json(
    benchpool: Benchpool, sent: list[str]
) -> None:
    shown = benchpool("metrics", sent[0])
    (loss, _, _) = rows = shown.out.splitlines()[1:4]
    assert loss.split()[:5] == ["train/loss", "0.05", "20", "0.05", "1"]
    assert "█" in loss
    assert [row.split()[0] for row in rows] == ["train/loss", "eval/acc", "lr"]
    picture = benchpool("metrics", sent[0], "--name", "train/loss").out
    assert "1…20" in picture
    points = list(csv.DictReader(benchpool("metrics", sent[0], "--csv").out.splitlines()))
    assert len(points) == 41
    assert (points[0]["name"], points[0]["attempt"], points[0]["step"]) == ("train/loss", "1", "1")
    metrics = benchpool("metrics", sent[0], "--json").json
    assert [it["goal"] for it in metrics["curves"]] == ["min", "max", None]
    nothing = benchpool("metrics", sent[0], "--name", "loss").out
    assert nothing.startswith(f"Job {sent[0][:8]} (train) has reported nothing named 'loss'")
    assert benchpool("metrics", sent[0], by="joe").status != 0


def test_note_is_shown_with_job_until_removed(benchpool: Benchpool, sent: list[str]) -> None:
    assert "<b>warm-up</b> helps" in benchpool("note", sent[0], "<b>warm-up</b> helps").out
    assert "Note" in benchpool("show", sent[0]).out
    under = f"{sent[0][:8]}: <b>warm-up</b> helps"
    assert under in benchpool("compare", *sent).out.splitlines()
    result = benchpool("note", sent[0], "x" * 501)
    assert result.status == 2
    assert "500" in result.err
    assert benchpool("note", "--json", sent[0]).json["note"] == ""
    assert "warm-up" not in benchpool("compare", *sent).out


def test_new_metrics_are_followed_to_job_end(
    benchpool: Benchpool, folder: Path, sent: list[str]
) -> None:
    go = folder / "go"
    (folder / "slow.py").write_text(SLOW.format(go=str(go)))
    running = benchpool("submit", "--json", "slow.py").json["id"]
    until(lambda: "LAST" in benchpool("metrics", running).out, "it has reported")
    go.touch()
    followed = benchpool("metrics", "-f", running, "--json").out.splitlines()
    facts = [json.loads(it) for it in followed]
    assert facts[-2:] == [
        {"name": "loss", "attempt": 1, "step": 2, "value": 0.25},
        {"name": "acc", "attempt": 1, "step": 2, "value": 0.5},
    ]
    assert "0.25" in benchpool("metrics", "-f", running).out, "of an ended one there is the table"
    assert benchpool("metrics", "-f", "--csv", running).status == 2
    assert benchpool("compare", "--tag", "try", "--json").json["jobs"][1]["id"] == sent[0]
    assert "0 were named or found" in benchpool("compare", "--tag", "other").err


class ReportingJob:
    """Client of a pool in which each report has another time, and no shown value changes."""

    def __init__(self, *reports: MetricReport) -> None:
        self.reports = reports
        self.count = 0

    def changes(self, client: object, id_: str) -> Iterator[Job]:
        """Yield the job after each report, twice, and ended."""
        for _ in self.reports:
            self.count += 1
            updated = datetime(2026, 11, 21, 12, 0, self.count, tzinfo=UTC)
            for _ in range(2):
                yield job("train", State.RUNNING, metrics={"loss": 1.0}, metrics_updated=updated)
        yield job("train", State.SUCCEEDED)

    def job_metrics(self, id_: str, *, name: str | None, points: int) -> JobMetrics:
        """Return the metrics of the reports so far."""
        lines = remade(self.reports[: self.count])
        return answer(id_, "train", lines, MetricsQuery(name=name, points=points))


def test_every_report_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [("loss", 1.0), ("loss", 1.0), ("loss", None), ("ninth", 0.5)]
    reports = [
        MetricReport(1, ((name, Reported(value, step, step)),))
        for step, (name, value) in enumerate(values)
    ]
    pool = ReportingJob(*reports)
    monkeypatch.setattr(following, "changes", pool.changes)
    found = list(metric_following.follow(pool, "abcd", None, {}))  # type: ignore[arg-type]
    assert [dict(news) for news in found] == [
        {"loss": (1, 0, 1.0)},
        {"loss": (1, 1, 1.0)},
        {"loss": (1, 2, None)},
        {"ninth": (1, 3, 0.5)},
    ]


def test_compared_runs_show_differences_and_best(benchpool: Benchpool, sent: list[str]) -> None:
    lines = benchpool("compare", *sent).out.splitlines()
    cells = [re.split(r"\s{2,}", line.strip()) for line in lines]
    found = {first: rest for first, *rest in cells}
    assert found["tags"] == ["try", "try"]
    assert found["--lr"] == ["0.1", "0.5"]
    assert found["train/loss, least"] == ["0.05 ★", "0.25"]
    assert found["eval/acc, greatest"] == ["2", "10 ★"]
    assert found["lr, last"] == ["0.1", "0.5"]
    other = benchpool("compare", *sent, "--max", "train/loss", "--min", "lr", "--json").json
    by_name = {row["name"]: row for row in other["metrics"]}
    assert [cell["is_best"] for cell in by_name["train/loss"]["cells"]] == [False, True]
    assert [cell["is_best"] for cell in by_name["lr"]["cells"]] == [True, False]
    assert benchpool("compare", sent[0]).status == 2
    assert benchpool("compare", *sent, "--min", "a", "--max", "a").status == 2


def curve(name: str, *values: float | None, attempts: list[int] | None = None) -> Curve:
    numbers = [it for it in values if it is not None]
    return Curve(
        name,
        steps=list(range(len(values))),
        values=list(values),
        after_s=[float(at) for at in range(len(values))],
        attempts=attempts or [1] * len(values),
        last=MetricPoint(len(values) - 1, numbers[-1]) if numbers else None,
        min=MetricPoint(0, min(numbers)) if numbers else None,
        max=MetricPoint(0, max(numbers)) if numbers else None,
        goal="min",
    )


def test_run_without_metrics_is_never_best() -> None:
    done = State.SUCCEEDED
    runs = [
        ComparedRun(job("a", done), {"--lr": "1", "gpus": "1"}, {"loss": curve("loss", None)}),
        ComparedRun(
            job("b", State.SUCCEEDED),
            {"--lr": "2", "gpus": "1"},
            {"loss": curve("loss", 2.0, None)},
        ),
        ComparedRun(job("c", done), {"gpus": "1"}, {}),
    ]
    found = compared(runs)
    (row,) = found.metrics
    assert [(it.is_best, it.best and it.best.value) for it in row.cells] == [
        (False, None),
        (True, 2.0),
        (False, None),
    ]
    assert [(it.name, it.values) for it in found.parameters] == [("--lr", ("1", "2", "–"))]
    assert found.same == 1
    assert found.best == {"loss": 1}
    assert compared(runs[1:2]).best == {}, "one alone is not the best of anything"


def test_equal_runs_have_no_best() -> None:
    reached = [{"loss": curve("loss", 2.0, last)} for last in (3.0, 4.0)]
    runs = [ComparedRun(job("a", State.SUCCEEDED), {}, curves) for curves in reached]
    assert compared(runs).best == {}


def test_arguments_are_recognised_by_option_names() -> None:
    assert arguments_of(
        ["-n", "3", "+trainer.gpus=2", "in.txt", "--decay", "-0.5", "--no-amp"]
    ) == {
        "-n": "3",
        "--no-amp": "yes",
        "+trainer.gpus": "2",
        "argument 1": "in.txt",
        "--decay": "-0.5",
    }


def test_large_curves_are_thinned_as_requested() -> None:
    report = MetricReport(1, tuple(("loss", Reported(float(it), it, it)) for it in range(500)))
    found: JobMetrics = answer("abcd", "train", remade([report]), MetricsQuery(points=50))
    (line,) = found.curves
    assert len(line.steps) <= 50
    assert line.max == MetricPoint(499, 499.0)
