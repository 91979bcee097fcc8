"""Traces are parsed strictly and selected reproducibly (formats, section 2)."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.simulation.replay import quotas, trace
from benchpool_scheduler.simulation.replay.pools import ReplayPool
from benchpool_scheduler.simulation.replay.trace import Selection, TraceJob

DAY = 86_400.0
HEADER = "submit_s,duration_s,gpus,project"


def written(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def job(submit_s: float, duration_s: float = 10.0, gpus: int = 1, project: str = "p") -> TraceJob:
    return TraceJob(2, submit_s, duration_s, gpus, project)


def test_compressed_trace_equals_plain_trace(tmp_path: Path) -> None:
    text = f"{HEADER}\n5,10,1,a\n0,20,2,b\n"
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    jobs = trace.read(packed)
    assert jobs == trace.read(written(tmp_path, text))
    assert [(j.submit_s, j.project, j.line) for j in jobs] == [(0.0, "b", 3), (5.0, "a", 2)]


def test_optional_columns_may_be_empty(tmp_path: Path) -> None:
    text = (
        f"{HEADER},user,workers,gpu_models,priority,time_limit_s\n"
        "0,10,8,a,susan,2,A100;H100,70,3600\n1,10,8,a,,,,,\n"
    )
    first, second = trace.read(written(tmp_path, text))
    assert (first.user, first.workers, first.priority) == ("susan", 2, 70)
    assert (first.gpu_models, first.time_limit_s) == (("A100", "H100"), 3600.0)
    assert (second.user, second.workers, second.priority) == (None, None, None)
    assert (second.gpu_models, second.time_limit_s) == ((), None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("submit_s,gpus,project\n", "line 1 lacks the column duration_s"),
        (f"{HEADER},colour\n", "line 1 has the unknown column 'colour'"),
        (f"{HEADER},gpus\n", "line 1 has the column gpus twice"),
        (f"{HEADER}\n0,10,1\n", "line 2 has 3 cells, the header 4"),
        (f"{HEADER}\n0,10,1,a\n0,-1,1,a\n", "line 3, column duration_s must be a number from 0"),
        (f"{HEADER}\n0,inf,1,a\n", "line 2, column duration_s"),
        (f"{HEADER}\nx,1,1,a\n", "line 2, column submit_s"),
        (f"{HEADER}\n0,1,1.5,a\n", "line 2, column gpus must be a whole number from 1"),
        (f"{HEADER}\n0,1,1,\n", "line 2, column project must be a name"),
        (f"{HEADER},workers\n0,1,8,a,3\n", "column workers must be a divisor of the job's 8 GPUs"),
        (f"{HEADER}\n", "has no jobs"),
    ],
)
def test_invalid_cell_is_named_by_row_and_column(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        trace.read(written(tmp_path, text))


def test_file_without_trace_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        trace.read(tmp_path / "nowhere.csv")
    with pytest.raises(InvalidInput, match="cannot be read"):
        trace.read(written(tmp_path, "plain text", "t.csv.gz"))


def test_window_includes_first_but_not_last_instant() -> None:
    jobs = [job(DAY - 1), job(DAY), job(2 * DAY - 1), job(2 * DAY)]
    kept = Selection(window=(1, 2)).of(jobs)
    assert [j.submit_s for j in kept] == [DAY, 2 * DAY - 1]


def test_small_projects_are_counted_inside_window() -> None:
    jobs = [job(0, project="a"), job(DAY, project="a"), job(DAY), job(DAY + 1)]
    assert {j.project for j in Selection(window=(1, 2), min_jobs=2).of(jobs)} == {"p"}


def test_load_compresses_submissions_and_window() -> None:
    selection = Selection(window=(1, 3), load=2)
    jobs = selection.of([job(DAY), job(2 * DAY)])
    assert [j.submit_s for j in jobs] == [DAY / 2, DAY]
    assert selection.window_s == (DAY / 2, 1.5 * DAY)


def test_sample_is_reproducible_with_seed() -> None:
    jobs = [job(float(i)) for i in range(200)]
    first = Selection(sample=0.5, seed=1).of(jobs)
    assert first == Selection(sample=0.5, seed=1).of(jobs)
    assert first != Selection(sample=0.5, seed=2).of(jobs)
    assert 60 < len(first) < 140


def test_empty_replay_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="no job of the trace is left"):
        Selection(window=(5, 6)).of([job(0)])


def test_quota_covers_demand_98_percent_of_time() -> None:
    always, seldom = job(0, 100, 2), job(0, 1.9, 5)
    assert quotas.percentiles([always, seldom], (0, 100)) == {"p": 5}  # its largest job
    often = [job(0, 100, 2), *(job(i, 3, 1) for i in (0, 0, 0))]
    assert quotas.percentiles(often, (0, 100)) == {"p": 5}
    rare = [job(0, 100, 2), *(job(i, 1, 1) for i in (0, 0, 0))]
    assert quotas.percentiles(rare, (0, 100)) == {"p": 2}


def test_equal_quotas_use_whole_pool() -> None:
    jobs = [job(0, project="a"), job(1, project="b"), job(2, project="c")]
    assert quotas.by_rule("equal", jobs, 8, None) == {"a": 3, "b": 3, "c": 2}


def test_quota_file_must_name_every_project(tmp_path: Path) -> None:
    path = written(tmp_path, "project,quota\na,3\nextra,9\n", "q.csv")
    assert quotas.from_file(path, [job(0, project="a")]) == {"a": 3}
    with pytest.raises(InvalidInput, match="lacks the project b"):
        quotas.from_file(path, [job(0, project="b")])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("quota,project\n", "line 1 must be project,quota"),
        ("project,quota\na,-1\n", "line 2, column quota must be a whole number"),
        ("project,quota\na\n", "line 2 has 1 cells"),
    ],
)
def test_invalid_quota_file_is_rejected(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        quotas.from_file(written(tmp_path, text, "q.csv"), [job(0, project="a")])


def test_job_larger_than_node_runs_on_several_nodes() -> None:
    pool = ReplayPool(4, 8)
    assert [pool.workers_of(job(0, gpus=gpus)) for gpus in (1, 8, 12, 16, 32)] == [1, 1, 2, 2, 4]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (TraceJob(7, 0, 1, 40, "p"), r"line 7 .* requests 40 GPUs, but the pool has 32"),
        (TraceJob(7, 0, 1, 16, "p", workers=1), "1 worker of 16 does not fit"),
        (TraceJob(7, 0, 1, 31, "p"), "cannot be split into equal workers"),
    ],
)
def test_impossible_job_is_named(asked: TraceJob, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ReplayPool(4, 8).workers_of(asked)
