"""``benchpool report``: sentence, table, CSV and JSON; invalid ranges are rejected."""

from __future__ import annotations

import csv
import sys
from datetime import UTC, datetime

import pytest

from benchpool_scheduler.cli import bench_views, report_verb
from benchpool_scheduler.cli.screen import Screen
from benchpool_scheduler.contract.use import (
    IdleBench,
    IdleBenches,
    IdleExempt,
    UseBy,
    UseClass,
    UseReport,
    UseRow,
    UseWaits,
)

from .conftest import Benchpool


def test_report_by_project_as_table_csv_and_json(benchpool: Benchpool) -> None:
    sent = benchpool("submit", "--wait", "--json", "--", sys.executable, "-c", "pass").json
    shown = benchpool("report", by="root")
    assert shown.status == 0, shown.err
    assert "GPU-hours, of them" in shown.out
    assert " GPU-hours were not held." in shown.out
    found = benchpool("report", "--from", "1h", "--json", by="root").json
    assert found["sight"] == "pool"
    of = {row["name"]: row for row in found["rows"]}
    assert of[sent["project"]]["waits"]["jobs"] == 1
    rows = list(csv.DictReader(benchpool("report", "--csv", by="root").out.splitlines()))
    assert {row["project"] for row in rows} == {"", sent["project"]}
    classes = benchpool("report", "--by", "class", "--json", by="root").json["rows"]
    assert sum(row["gpu_h"][row["name"]] for row in classes) > 0


def test_non_administrator_sees_only_own_use(benchpool: Benchpool) -> None:
    benchpool("submit", "--wait", "--", sys.executable, "-c", "pass")
    found = benchpool("report", "--by", "user", "--json").json
    assert found["sight"] != "pool"
    assert all(row["name"] for row in found["rows"])


def test_enough_option_shows_sufficient_gpus(benchpool: Benchpool) -> None:
    benchpool("submit", "--wait", "--", sys.executable, "-c", "pass")
    found = benchpool("report", "--enough", "1", by="root")
    assert "1 GPU in one pool would have been enough" in found.out, found
    assert benchpool("report", "--enough", "1").status == 3


def test_idle_bench_forecast_requires_administrator(
    benchpool: Benchpool,
) -> None:
    found = benchpool("idle-benches", "--days", "2", "--minutes", "30", by="root")
    assert (found.status, found.out) == (0, "No bench was measured in the last 2 days.\n")
    assert benchpool("idle-benches").status == 3
    assert benchpool("idle-benches", "--minutes", "1", by="root").status == 2


def test_idle_benches_are_listed_below_summary(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2026, 11, 1, tzinfo=UTC)
    answer = IdleBenches(
        text="Freed.",
        notes=["Nothing was given back."],
        begin=at,
        end=at,
        minutes=60,
        gpu_h=180.0,
        measured_gpu_h=804.5,
        simulated=False,
        rows=[IdleBench("tom", "", 2, 31, 180.0)],
        exemptions=[
            IdleExempt(who=who, until=at.date(), in_force=holds, why="exam", servers=1, gpu_h=5.0)
            for who, holds in (("group:course", True), ("joe", False))
        ],
    )
    bench_views.idle(Screen(), answer)
    first, head, row, note, exempt, *rules = capsys.readouterr().out.splitlines()
    assert (first, note) == ("Freed.", "Nothing was given back.")
    assert exempt.split() == ["EXEMPT", "UNTIL", "NOW", "SERVERS", "GPU-HOURS", "WHY"]
    assert [rule.split() for rule in rules] == [
        ["group:course", "2026-11-01", "in", "force", "1", "5.00", "exam"],
        ["joe", "2026-11-01", "ended", "1", "5.00", "exam"],
    ]
    assert head.split() == ["USER", "SERVER", "GPUS", "TIMES", "GPU-HOURS"]
    assert row.split() == ["tom", "(default)", "2", "31", "180.0"]


def test_month_of_pool_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2026, 11, 1, tzinfo=UTC)
    hours = {UseClass.COMPUTING: 1291.9, UseClass.IDLE_TRAINING: 316.9, UseClass.LOST: 0.004}
    row = UseRow(
        name="a-project-of-a-long-name",
        gpu_h=hours,
        held_gpu_h=1744.0,
        cost=4258.05,
        waits=UseWaits(224, 4210.0, 5 * 86_400.0 + 7200),
        preemptions_given=224,
    )
    rest = UseRow(name=None, gpu_h={UseClass.FREE: 8030.4}, held_gpu_h=0.0)
    total = UseRow(name=None, gpu_h={**hours, **rest.gpu_h}, held_gpu_h=1744.0)
    report = UseReport(
        text="From …", notes=[], by=UseBy.PROJECT, begin=at, end=at, time_zone="UTC",
        sight="pool", currency="CHF", rows=[row, rest], total=total,
    )  # fmt: skip
    report_verb.show(Screen(), report)
    _, head, first, *legend = capsys.readouterr().out.splitlines()
    assert head.split() == [
        *("PROJECT", "HELD", "BUSY", "IDLE", "LOST", "CHF", "50", "%", "95", "%", "PAUSED"),
    ]
    assert first.split()[1:5] == ["1,609", "1,292", "316.9", "<0.01"]
    assert "4,258  1 h 10 min  5 d 2 h     224" in first
    assert max(map(len, (head, first))) <= 80
    assert "8,030 GPU-hours were not held." in " ".join(legend)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--month", "2026-13"), "month"),
        (("--month", "2999-01"), "in the future"),
        (("--from", "1h", "--to", "2h"), "is not after its begin"),
        (("--from", "2020-01-01T00:00:00Z"), "Use a shorter range"),
        (("--month", "2026-01", "--from", "1h"), "not both"),
    ],
)
def test_invalid_range_is_rejected(
    benchpool: Benchpool, words: tuple[str, ...], message: str
) -> None:
    refused = benchpool("report", *words, by="root")
    assert (refused.status, message in refused.err) == (2, True), refused
