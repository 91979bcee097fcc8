"""``benchpool whatif`` in an administrator's terminal, against a real service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchpool_support.serving import CONFIGURATION, Served

pytestmark = pytest.mark.slow

Benchpool = Callable[..., Any]


@pytest.fixture
def borrowed(benchpool: Benchpool, service: Served) -> None:
    """Susan runs on three of the four pool GPUs; joe waits for four."""
    benchpool("submit", "--gpus", "3", "--name", "runs", "--", "sleep", "600")
    waits = benchpool(
        "submit", "--gpus", "4", "--name", "waits", "--json", "--", "true", by="joe"
    ).json["id"]
    with service.client("joe") as joe:
        for _ in joe.events():
            reason = joe.why(waits).reason
            if reason is not None and reason.code != "next-pass":
                return
    raise AssertionError("events never end")


@pytest.fixture
def swapped(folder: Path) -> Path:
    """Configuration that gives all GPUs to speech."""
    file = folder / "swapped.yaml"
    text = CONFIGURATION.replace("vision, quota: 2", "vision, quota: 0")
    file.write_text(text.replace("speech, quota: 2", "speech, quota: 4"))
    return file


@pytest.mark.usefixtures("borrowed")
def test_changed_configuration_is_shown_by_project_and_job(
    benchpool: Benchpool, swapped: Path
) -> None:
    result = benchpool("whatif", "--config", str(swapped), by="root")
    assert result.status == 0
    lines = result.out.splitlines()
    assert lines[0].startswith("Now 1 waiting job would run and 1 job would be paused")
    rows = [line.split() for line in lines]
    assert ["speech", "2", "→", "4", "2", "→", "4", "0", "→", "4", "1", "→", "0", "0"] in rows
    assert any(row[1:] and row[1] == "runs" and "paused;" in row for row in rows)
    assert lines[-1] == "Preview only: nothing was changed."
    assert max(map(len, lines[6:])) <= 80, result.out


@pytest.mark.usefixtures("borrowed")
def test_added_gpus_are_shown_as_json(benchpool: Benchpool) -> None:
    answer = benchpool("whatif", "--more-gpus", "4", "--gpu-model", "A100", "--json", by="root")
    assert answer.json["after"] == {"gpus": 8, "allocated": 7}
    assert [job["after"]["state"] for job in answer.json["jobs"]] == ["runs"]


def test_non_administrator_is_rejected(benchpool: Benchpool) -> None:
    result = benchpool("whatif", "--more-gpus", "1")
    assert result.status == 3
    assert "administrator" in result.err


def test_unreadable_file_is_named(benchpool: Benchpool, folder: Path) -> None:
    result = benchpool("whatif", "--config", str(folder / "none.yaml"), by="root")
    assert result.status == 2
    assert "none.yaml cannot be read" in result.err


# --------------------------------------------------------------------------- over a workload

WORKLOAD = """\
submit_s,duration_s,gpus,project
0,36000,4,vision
0,36000,4,vision
3600,7200,4,speech
"""


@pytest.fixture
def workload(folder: Path) -> Path:
    file = folder / "night.csv"
    file.write_text(WORKLOAD)
    return file


@pytest.fixture
def quotas(folder: Path) -> Path:
    file = folder / "quotas.csv"
    file.write_text("project,quota\nvision,8\nspeech,0\n")
    return file


def halves(folder: Path) -> str:
    file = folder / "halves.yaml"
    file.write_text(
        "version: 1\nprojects: [{name: vision, quota: 4}, {name: speech, quota: 4}]\n"
        "policy: {grace_s: 30}\n"
    )
    return str(file)


def test_trace_is_replayed_with_both_quota_sets_without_service(
    benchpool: Benchpool, folder: Path, workload: Path, quotas: Path
) -> None:
    result = benchpool(
        *("whatif", "--trace", str(workload), "--gpus", "8", "--quotas", str(quotas)),
        *("--config", halves(folder), "--restart-s", "0", "--url", "http://127.0.0.1:9"),
    )
    assert result.status == 0
    assert result.out.startswith(
        "Over 3 recorded jobs the mean wait would be 40 min instead of 3 h,"
    )
    rows = [line.split() for line in result.out.splitlines()]
    assert ["speech", "1", "8", "9.00", "→", "0.00", "9.00", "→", "0.00", "0"] in rows
    why = "Pauses per job: Of 1 pause, 1 is for a job that would still wait without the change."
    assert why in " ".join(result.out.split())
    assert "vision: 1 of 2 jobs waits longer: 1 is paused more often." in result.out
    assert max(len(line) for line in result.out.splitlines()[1:]) <= 80


def test_trace_with_added_gpus_keeps_quotas(
    benchpool: Benchpool, workload: Path, quotas: Path
) -> None:
    for pool in (["--gpus", "8"], ["--nodes", "2", "--gpus-per-node", "4"]):
        answer = benchpool(
            *("whatif", "--json", "--trace", str(workload), "--quotas", str(quotas), *pool),
            *("--more-gpus", "4"),
        ).json
        assert (answer["before"]["gpus"], answer["after"]["gpus"]) == (8, 12)
        assert (answer["before"]["mean_wait_h"], answer["after"]["mean_wait_h"]) == (3, 0)
        assert (answer["jobs"], answer["left_out"]) == (3, 0)


def test_longer_wait_with_more_gpus_is_explained(benchpool: Benchpool, folder: Path) -> None:
    # Three GPUs for ten hours, four that wait for them, and a short job that overtakes.
    trace = folder / "between.csv"
    trace.write_text(
        "submit_s,duration_s,gpus,project\n0,36000,3,vision\n3600,18000,4,vision\n7200,1800,1,vision\n"
    )
    result = benchpool(
        *("whatif", "--trace", str(trace), "--gpus", "4", "--quota-rule", "equal"),
        *("--more-gpus", "3"),
    )
    assert (
        "Short jobs wait, min: 1 of 1 job waits longer: 1 starts later, behind jobs" in result.out
    )
    assert "Mean wait, h:" not in result.out


def test_projects_missing_in_configuration_are_excluded_and_reported(
    benchpool: Benchpool, folder: Path, workload: Path
) -> None:
    file = folder / "less.yaml"
    file.write_text("version: 1\nprojects: [{name: vision, quota: 8}]\n")
    result = benchpool("whatif", "--trace", str(workload), "--gpus", "8", "--config", str(file))
    assert "! 1 more jobs are left out" in result.out


def test_trace_requires_pool_and_difference(benchpool: Benchpool, workload: Path) -> None:
    same = benchpool("whatif", "--trace", str(workload), "--gpus", "8")
    assert (same.status, "Nothing to compare" in same.err) == (2, True)
    poolless = benchpool("whatif", "--trace", str(workload), "--more-gpus", "8")
    assert (poolless.status, "give the size of the pool" in poolless.err) == (2, True)
    both = benchpool("whatif", "--trace", str(workload), "--more-gpus", "8", "--history", "1")
    assert (both.status, "both name a workload" in both.err) == (2, True)


def test_recorded_history_is_shown_after_current_jobs(benchpool: Benchpool) -> None:
    benchpool("submit", "--wait", "--", "true")
    result = benchpool("whatif", "--more-gpus", "4", "--history", "1", by="root")
    assert result.status == 0
    assert "Over 1 recorded job the mean wait would be" in result.out
    assert result.out.splitlines()[-1] == "Preview only: nothing was changed."


def test_recorded_history_is_printed_as_trace_and_replayed(
    benchpool: Benchpool, folder: Path
) -> None:
    benchpool("submit", "--wait", "--gpus", "2", "--", "true")
    result = benchpool("history", "--days", "1", by="root")
    header, row = result.out.splitlines()
    assert header == "submit_s,duration_s,gpus,project,user,workers,priority,time_limit_s"
    assert row.split(",")[2:] == ["2", "vision", "susan", "1", "50", ""]
    (folder / "mine.csv").write_bytes(result.raw)
    found = benchpool("whatif", "--trace", str(folder / "mine.csv"), "--gpus", "2",
                      "--more-gpus", "2", "--json")  # fmt: skip
    assert found.json["jobs"] == 1
    assert benchpool("history", "--json", by="root").json[0]["project"] == "vision"
    assert benchpool("history").status == 3
    own = benchpool("replay", "--history", "1", "--json", by="root").json
    assert own["jobs"] == 1
    assert benchpool("replay", "--history", "1").status == 3
    neither = benchpool("replay", by="root")
    assert neither.status == 2
    assert "Give either a TRACE to replay, or --history DAYS" in neither.err
