"""``benchpool report``: sentence, table, CSV and JSON; what is no range is refused."""

from __future__ import annotations

import csv
import sys
from datetime import UTC, datetime

import pytest

from benchpool_scheduler.cli import bench_views
from benchpool_scheduler.cli.screen import Screen
from benchpool_scheduler.contract.use import IdleBench, IdleBenches

from .conftest import Benchpool


def test_a_job_is_told_by_project_as_table_csv_and_json(benchpool: Benchpool) -> None:
    sent = benchpool("submit", "--wait", "--json", "--", sys.executable, "-c", "pass").json
    shown = benchpool("report", by="root")
    assert shown.status == 0, shown.err
    assert "GPU-hours, of them" in shown.out
    assert "(no project)" in shown.out
    found = benchpool("report", "--from", "1h", "--json", by="root").json
    assert found["sight"] == "pool"
    of = {row["name"]: row for row in found["rows"]}
    assert of[sent["project"]]["waits"]["jobs"] == 1
    rows = list(csv.DictReader(benchpool("report", "--csv", by="root").out.splitlines()))
    assert {row["project"] for row in rows} == {"", sent["project"]}
    classes = benchpool("report", "--by", "class", "--json", by="root").json["rows"]
    assert sum(row["gpu_h"][row["name"]] for row in classes) > 0


def test_who_does_not_administer_sees_their_own(benchpool: Benchpool) -> None:
    benchpool("submit", "--wait", "--", sys.executable, "-c", "pass")
    found = benchpool("report", "--by", "user", "--json").json
    assert found["sight"] != "pool"
    assert all(row["name"] for row in found["rows"])


def test_how_many_gpus_would_have_been_enough(benchpool: Benchpool) -> None:
    benchpool("submit", "--wait", "--", sys.executable, "-c", "pass")
    found = benchpool("report", "--enough", "1", by="root")
    assert "1 GPU in one pool would have been enough" in found.out, found
    assert benchpool("report", "--enough", "1").status == 3


def test_what_idle_benches_would_give_back_is_told_to_administrators(
    benchpool: Benchpool,
) -> None:
    found = benchpool("idle-benches", "--days", "2", "--minutes", "30", by="root")
    assert (found.status, found.out) == (0, "No bench was measured in the last 2 days.\n")
    assert benchpool("idle-benches").status == 3
    assert benchpool("idle-benches", "--minutes", "1", by="root").status == 2


def test_idle_benches_are_listed_below_the_sentence(capsys: pytest.CaptureFixture[str]) -> None:
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
    )
    bench_views.idle(Screen(), answer)
    first, head, row, last = capsys.readouterr().out.splitlines()
    assert (first, last) == ("Freed.", "Nothing was given back.")
    assert head.split() == ["USER", "SERVER", "GPUS", "TIMES", "GPU-HOURS"]
    assert row.split() == ["tom", "(default)", "2", "31", "180.0"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--month", "2026-13"), "month"),
        (("--month", "2999-01"), "has not come yet"),
        (("--from", "1h", "--to", "2h"), "does not lie after its begin"),
        (("--from", "2020-01-01T00:00:00Z"), "name a shorter one"),
        (("--month", "2026-01", "--from", "1h"), "not both"),
    ],
)
def test_a_range_that_is_none_is_refused(
    benchpool: Benchpool, words: tuple[str, ...], said: str
) -> None:
    refused = benchpool("report", *words, by="root")
    assert (refused.status, said in refused.err) == (2, True), refused
