"""A replay runs the product's core in virtual time, without access to run times."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool_scheduler.core.model import Policy
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.simulation.replay import ReplayOptions, floors, run
from benchpool_scheduler.simulation.replay.engine import Run
from benchpool_scheduler.simulation.replay.report import POLICIES, replay
from benchpool_scheduler.simulation.replay.summary import Summary
from benchpool_scheduler.simulation.replay.trace import TraceJob
from benchpool_support.examples import examples

KEYS = [
    *("jobs", "gpus", "policy", "allocated_utilisation", "useful_utilisation"),
    *("mean_wait_h", "p50_wait_h", "p95_wait_h", "p99_wait_h", "short_job_wait_min"),
    *("mean_jct_h", "makespan_d", "preemptions_per_job", "lost_gpu_h", "floor_mean_jct_h"),
    *("floor_makespan_d", "ceiling_utilisation", "passes", "pass_ms_p50", "pass_ms_p99", "wall_s"),
]

Rows = list[tuple[float, float, int, str]]


def options(folder: Path, rows: Rows, **given: object) -> ReplayOptions:
    path = folder / "trace.csv"
    lines = [",".join(map(str, row)) for row in rows]
    path.write_text("\n".join(["submit_s,duration_s,gpus,project", *lines, ""]))
    return replace(ReplayOptions(path), **{"gpus": 4, "quota_rule": "equal", **given})  # type: ignore[arg-type]


def played(folder: Path, rows: Rows, **given: object) -> tuple[Summary, list[Run]]:
    return replay(options(folder, rows, **given))


def test_project_reclaims_quota_and_paused_job_resumes(tmp_path: Path) -> None:
    rows: Rows = [(0, 1000, 4, "a"), (100, 300, 2, "b")]
    _, (surplus, claim) = played(tmp_path, rows, restart_s=60, lost_progress_s=10)
    assert (claim.first_start_s, claim.wait_s) == (100, 0)
    assert surplus.preemptions == 1
    # Paused at 100 with 10 s unsaved, resumed at 400; 60 s to restart, 910 s left.
    assert surplus.end_s == 400 + 60 + 910
    assert surplus.wait_s == 300 + 60 + 10
    assert surplus.lost_gpu_s == 4 * (60 + 10)


def test_interrupted_restart_costs_its_elapsed_time(tmp_path: Path) -> None:
    rows: Rows = [(0, 1000, 4, "a"), (100, 100, 2, "b"), (210, 100, 2, "b")]
    _, runs = played(tmp_path, rows, restart_s=60)
    assert runs[0].preemptions == 2
    assert runs[0].lost_gpu_s == 4 * (10 + 60)  # from 200 to 210, and from 310 to 370
    assert runs[0].end_s == 370 + 900


def test_daily_pauses_stay_within_policy(tmp_path: Path) -> None:
    often = Policy().preemptions_per_day
    claims: Rows = [(half * 1800, 60, 2, "b") for half in range(1, often + 2)]
    _, (surplus, *claimants) = played(tmp_path, [(0, 200_000, 4, "a"), *claims])
    starts = [it.first_start_s for it in claimants]
    assert starts[:often] == [it.job.submit_s for it in claimants[:often]]
    # The first pause no longer counts one day later.
    assert starts[often:] == [1800 + 24 * 3600]
    assert surplus.preemptions == often + 1


def test_smaller_jobs_pass_larger_waiting_jobs(tmp_path: Path) -> None:
    rows: Rows = [(0, 100, 3, "a"), (1, 100, 3, "a"), (2, 10, 1, "a")]
    starts = {
        policy: [r.first_start_s for r in played(tmp_path, rows, policy=policy)[1]]
        for policy in POLICIES
    }
    assert starts["guaranteed"] == starts["static"] == [0, 100, 2]
    assert starts["fifo"] == [0, 100, 100]  # strict first come, first served


def test_static_partitions_lend_nothing(tmp_path: Path) -> None:
    rows: Rows = [(0, 100, 2, "a"), (0, 100, 2, "a"), (0, 10, 2, "b")]
    assert [r.first_start_s for r in played(tmp_path, rows, policy="static")[1]] == [0, 100, 0]


def test_static_policy_names_job_too_large_for_partition(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"line 2 .* requests 3 GPUs, but the partition"):
        played(tmp_path, [(0, 1, 3, "a"), (0, 1, 1, "b")], policy="static")


def test_utilisation_is_measured_over_window(tmp_path: Path) -> None:
    day = 86_400
    rows: Rows = [(day, day / 2, 4, "a"), (1.75 * day, day, 4, "a")]
    summary, _ = played(tmp_path, rows, window="1:2")
    assert summary.allocated_utilisation == pytest.approx(0.75)
    assert summary.ceiling_utilisation == pytest.approx(0.75)
    whole, _ = played(tmp_path, rows)
    assert whole.allocated_utilisation == pytest.approx(1.5 / 1.75)


def test_restarts_and_lost_progress_are_allocated_but_not_useful(tmp_path: Path) -> None:
    rows: Rows = [(0, 100, 4, "a"), (50, 100, 2, "b")]
    summary, _ = played(tmp_path, rows, restart_s=10, lost_progress_s=20)
    assert summary.makespan_d * 86_400 == pytest.approx(150 + 10 + 70)
    assert summary.lost_gpu_h * 3600 == pytest.approx(4 * 30)
    present = 4 * 230
    assert summary.useful_utilisation == pytest.approx((4 * 100 + 2 * 100) / present)
    assert summary.allocated_utilisation - summary.useful_utilisation == pytest.approx(
        120 / present
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_fragmented_nodes_delay_job_that_fits_by_count(tmp_path: Path, policy: str) -> None:
    rows: Rows = [(0, 100, 2, "a"), (0, 100, 2, "a"), (0, 100, 2, "a"), (10, 10, 2, "a")]
    counted = played(tmp_path, rows, gpus=9, policy=policy)[1][3]
    placed = played(tmp_path, rows, gpus=None, nodes=3, gpus_per_node=3, policy=policy)[1][3]
    assert (counted.first_start_s, placed.first_start_s) == (10, 100)


def test_summary_keys_follow_format_order(tmp_path: Path) -> None:
    lines: list[str] = []
    run(options(tmp_path, [(0, 1, 1, "a")], json=True), echo=lines.append)
    assert list(json.loads(lines[0])) == KEYS
    shown: list[str] = []
    run(options(tmp_path, [(0, 1, 1, "a")]), echo=shown.append)
    assert [line.split()[0] for line in shown] == KEYS


def test_every_job_has_row(tmp_path: Path) -> None:
    out = tmp_path / "jobs.csv"
    rows: Rows = [(0, 100, 4, "a"), (50, 100, 2, "b")]
    run(options(tmp_path, rows, jobs_out=out), echo=lambda _: None)
    first, second = csv.DictReader(out.open())
    assert (first["submit_s"], first["first_start_s"], first["end_s"]) == ("0.0", "0.0", "260.0")
    assert (first["preemptions"], first["lost_gpu_s"], first["wait_s"]) == ("1", "240.0", "160.0")
    assert (second["first_start_s"], second["preemptions"]) == ("50.0", "0")


@pytest.mark.parametrize(
    "given",
    [{"gpus": None}, {"gpus": 4, "nodes": 2}, {"gpus": None, "nodes": 2}, {"window": "3:1"}],
)
def test_invalid_pool_or_window_is_rejected(tmp_path: Path, given: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        played(tmp_path, [(0, 1, 1, "a")], **given)


# --------------------------------------------------------------------------- invariants

times = st.integers(0, 300)
rows_drawn = st.lists(
    st.tuples(times, st.integers(1, 200), st.integers(1, 2), st.sampled_from(["a", "b"])),
    min_size=1,
    max_size=25,
)
steady = settings(max_examples=examples(60), deadline=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@steady
@given(rows=rows_drawn, policy=st.sampled_from(POLICIES))
def test_no_policy_beats_floors_and_ceiling(folder: Path, rows: Rows, policy: str) -> None:
    rows = [*rows, (0, 1, 1, "a"), (0, 1, 1, "b")]
    summary, runs = played(folder, rows, policy=policy)
    slack = 1e-9
    assert summary.mean_jct_h >= summary.floor_mean_jct_h - slack
    assert summary.makespan_d >= summary.floor_makespan_d - slack
    assert summary.useful_utilisation <= summary.ceiling_utilisation + slack
    assert summary.ceiling_utilisation <= 1 + slack
    held = sum(r.job.work_gpu_s + r.lost_gpu_s for r in runs)
    present = summary.gpus * summary.makespan_d * 86_400
    assert summary.allocated_utilisation * present == pytest.approx(held)


@steady
@given(rows=rows_drawn, at=times, longer=st.integers(1, 500))
def test_later_ends_do_not_change_earlier_decisions(
    folder: Path, rows: Rows, at: int, longer: int
) -> None:
    """The scheduler has no access to ``duration_s``: later ends change nothing earlier."""
    _, before = played(folder, rows)
    rows = [(s, d, g, p) for s, d, g, p in sorted(rows, key=lambda row: row[0])]
    late = [r.index for r in before if r.end_s > at]
    lengthened = [(s, d + longer if i in late else d, g, p) for i, (s, d, g, p) in enumerate(rows)]
    _, after = played(folder, lengthened)
    early = [
        [r.first_start_s for r in runs if _before(r.first_start_s, at)] for runs in (before, after)
    ]
    assert early[0] == early[1]


def _before(instant_s: float | None, at: int) -> bool:
    return instant_s is not None and instant_s <= at


@steady
@given(rows=rows_drawn, gpus=st.integers(2, 6))
def test_completion_floor_is_reached_on_one_fast_machine(rows: Rows, gpus: int) -> None:
    """One GPU: shortest remaining time first reaches the bound."""
    jobs = [TraceJob(0, float(s), float(d), 1, p) for s, d, _, p in sorted(rows)]
    exact = _shortest_first([(j.submit_s, j.duration_s) for j in jobs])
    assert floors.mean_jct_s(jobs, 1) == pytest.approx(exact)
    assert floors.mean_jct_s(jobs, gpus) <= exact + 1e-9


def _shortest_first(jobs: list[tuple[float, float]]) -> float:
    """Return the mean completion time of a second-by-second simulation."""
    left = [duration for _, duration in jobs]
    ends = [0.0] * len(jobs)
    now = 0.0
    while any(left):
        here = [i for i, (submit, _) in enumerate(jobs) if submit <= now and left[i]]
        if here:
            chosen = min(here, key=lambda i: left[i])
            left[chosen] -= 1
            ends[chosen] = now + 1
        now += 1
    return sum(end - submit for end, (submit, _) in zip(ends, jobs, strict=True)) / len(jobs)


def test_start_estimates_are_compared_with_replay(tmp_path: Path) -> None:
    # Jobs of one hour each queue for one GPU; after four ends, run times are learned.
    rows: Rows = [(60.0 * i, 3600.0, 1, "a") for i in range(60)]
    given = options(tmp_path, rows, gpus=1, estimates=True)
    printed: list[str] = []
    assert run(given, printed.append) == 0
    table = printed[printed.index("") + 1 :]
    assert table[0].split() == [
        "start",
        "seemed",
        "away",
        "estimates",
        "in",
        "the",
        "range",
        "earlier",
        "later",
    ]
    assert [line.split("  ")[0] for line in table[1:]] == [
        *("up to 10 min", "up to 1 h", "up to 6 h", "longer")
    ]
    printed.clear()
    run(replace(given, json=True), printed.append)
    horizons = json.loads(printed[0])["start_estimates"]
    judged = sum(it["starts"] for it in horizons)
    assert judged >= 50
    assert sum(it["inside"] for it in horizons) >= 0.8 * judged


def test_estimates_require_guaranteed_policy(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="omit --estimates or --policy"):
        run(options(tmp_path, [(0, 10, 1, "a")], policy="fifo", estimates=True))


def test_estimates_before_judged_day_train_but_are_not_counted(tmp_path: Path) -> None:
    rows: Rows = [(60.0 * i, 3600.0, 1, "a") for i in range(60)]
    asked = options(tmp_path, rows, gpus=1, estimates=True)

    def starts(given: ReplayOptions) -> int:
        printed: list[str] = []
        run(replace(given, json=True), printed.append)
        return sum(it["starts"] for it in json.loads(printed[0])["start_estimates"])

    every, late = starts(asked), starts(replace(asked, judged_from=0.5))
    assert 0 < late < every
    assert starts(replace(asked, judged_from=100.0)) == 0
    with pytest.raises(InvalidInput, match="add --estimates"):
        run(replace(asked, estimates=False, judged_from=1.0))
