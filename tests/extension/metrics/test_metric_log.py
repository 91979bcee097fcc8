"""``benchpool.log``: reports reach the pool, rate-limited, and the last value is never lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

import benchpool
from benchpool.metrics import reporting
from benchpool.metrics.numbers import step_of, value_of
from benchpool_scheduler.worker.metric_lines import MetricReader

NAMES = ("RANK", "LOCAL_RANK", "NODE_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BENCHPOOL_METRICS_FILE", str(tmp_path / "metrics.jsonl"))
    return tmp_path / "metrics.jsonl"


@pytest.fixture(autouse=True)
def reporter(monkeypatch: pytest.MonkeyPatch) -> reporting.MetricWriter:
    fresh = reporting.MetricWriter()
    monkeypatch.setattr(reporting, "_writer", fresh)
    return fresh


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def logged(file: Path) -> list[tuple[object, object]]:
    return [(it.get("step"), it["values"]) for it in lines(file)]


def test_metric_reader_reads_each_report(file: Path) -> None:
    benchpool.log(loss=0.5, step=1)
    benchpool.log({"train/loss": 0.25, "val": {"acc": 1}}, step=2)
    benchpool.log(lr=1e-4)
    found = MetricReader(file.parent, speaks=True).read()
    assert [(it.name, it.value, it.step) for it in found] == [
        ("loss", 0.5, 1),
        ("train/loss", 0.25, 2),
        ("val/acc", 1.0, 2),
        ("lr", 1e-4, None),
    ]


class Scalar:
    """Number type of a library."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value


class Array:
    """Object without a single value."""

    def __float__(self) -> float:
        raise RuntimeError("only tensors of one element can be converted")


def test_library_numbers_are_logged_and_other_values_ignored(file: Path) -> None:
    benchpool.log(a=Scalar(0.5), b=Array(), c="high", d=None, e=True, f=Decimal("1.5"), step=1)
    benchpool.log(loss=float("nan"), best=float("-inf"), step=2)
    benchpool.log(nothing="x")
    benchpool.log()
    assert logged(file) == [(1, {"a": 0.5, "f": 1.5}), (2, {"loss": None, "best": None})]
    assert (step_of(Scalar(3.0)), step_of(10**16), value_of(10**400)) == (3, None, None)


def test_log_outside_job_writes_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCHPOOL_METRICS_FILE")
    benchpool.log(loss=1.0, step=1)
    assert not file.exists()


def test_first_rank_logs_for_all_ranks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    benchpool.log(loss=1.0, step=1)
    benchpool.log(loss=1.0, step=1, all_ranks=True)
    monkeypatch.delenv("RANK")
    monkeypatch.setenv("NODE_RANK", "1")
    benchpool.log(loss=2.0, step=1)
    monkeypatch.setenv("RANK", "0")
    benchpool.log(loss=3.0, step=1)
    assert logged(file) == [(1, {"loss (rank 3)": 1.0}), (1, {"loss": 3.0})]


def test_fast_loop_is_rate_limited_and_keeps_last_value(
    file: Path, reporter: reporting.MetricWriter
) -> None:
    for step in range(reporting.BURST + 5_000):
        benchpool.log(loss=float(step), step=step)
    written = len(lines(file))
    assert reporting.BURST <= written < reporting.BURST + 1_000
    reporter.flush()
    assert logged(file)[-1] == (reporting.BURST + 4_999, {"loss": float(reporting.BURST + 4_999)})


def test_last_value_is_written_at_program_end(file: Path) -> None:
    program = (
        "import benchpool; from benchpool.metrics import reporting as r\n"
        "for step in range(r.BURST + 100): benchpool.log(loss=step, step=step)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=file.parent, timeout=60)
    assert logged(file)[-1][0] == reporting.BURST + 99


def test_long_metrics_file_is_rotated_without_loss(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "MOST_BYTES", 400)
    reader = MetricReader(file.parent, speaks=True)
    found: list[int | None] = []
    for step in range(50):
        benchpool.log(loss=1.0, step=step)
        found += [it.step for it in reader.read()]
    while rest := reader.read():
        found += [it.step for it in rest]
    assert found == list(range(50))
    assert sum(it.stat().st_size for it in file.parent.iterdir()) < 1_000


def test_first_burst_of_long_names_is_kept_for_reader(file: Path) -> None:
    values = {f"{'name' * 24}{number:04}": number / 7 for number in range(100)}
    for step in range(reporting.BURST):
        benchpool.log(values, step=step)
    reader = MetricReader(file.parent, speaks=True)
    found = len(reader.read())
    while reader.behind:
        found += len(reader.read())
    assert found == 100 * reporting.BURST


def test_unwritable_metrics_file_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCHPOOL_METRICS_FILE", str(tmp_path / "gone" / "metrics.jsonl"))
    benchpool.log(loss=1.0, step=1)


def test_log_imports_only_standard_library() -> None:
    program = (
        "import sys; import benchpool; benchpool.log(loss=1)\n"
        "ours = {'benchpool', 'benchpool.metrics', 'benchpool.metrics.numbers',"
        " 'benchpool.metrics.reporting'}\n"
        "found = {n for n in sys.modules if n.split('.')[0] not in sys.stdlib_module_names}\n"
        "print(sorted(n for n in found if n.split('.')[0].startswith('benchpool') and n not in ours"
        " or n.split('.')[0] in ('msgspec', 'httpx', 'click')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60,
        env={**os.environ, "BENCHPOOL_METRICS_FILE": ""},
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
