"""The curve file of a job stays below its limit and is folded when the job has ended."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.curves.points import Reported
from benchpool_scheduler.curves.series import MetricReport, as_reports
from benchpool_scheduler.runtime import EndedBy, ReportedValue, WorkerMetrics
from benchpool_scheduler.service.ledger.job_curves import MOST_BYTES, JobCurves
from benchpool_scheduler.store.curve_files import FOLDER, CurveFiles
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import SUSAN, make_pool, opened, reached, sleeper, until_job
from benchpool_support.scripted import ScriptedRuntime, devices

NAMES = tuple(f"train/metric-{number:02}" for number in range(20))
AT = 1_763_913_600.123456


def piece(number: int, steps: int = 50) -> MetricReport:
    """Return values with many digits of 20 names."""
    return MetricReport(
        1,
        tuple(
            (name, Reported(1 / (3 + step + place), AT + step / 7, step))
            for step in range(number * steps, (number + 1) * steps)
            for place, name in enumerate(NAMES)
        ),
    )


async def test_file_of_20_names_never_exceeds_limit(tmp_path: Path) -> None:
    curves, file = JobCurves(tmp_path, _no_problem), tmp_path / "abcd.jsonl"
    sizes = []
    for number in range(90):
        curves.take("abcd", piece(number), AT)
        if number % 3 == 2:
            await curves.write()
            sizes.append(file.stat().st_size)
    assert max(sizes) <= MOST_BYTES
    assert {after > before for before, after in pairwise(sizes)} == {True, False}
    kept = await curves.lines("abcd")
    assert CurveFiles(tmp_path).read("abcd") == kept
    curves.ended(["abcd", "other"])
    await curves.write()
    assert len(file.read_text().splitlines()) == len(as_reports(kept)) == 1
    assert CurveFiles(tmp_path).read("abcd") == kept
    folded = file.stat()
    curves.ended(["abcd"])
    await curves.write()
    assert file.stat().st_mtime_ns == folded.st_mtime_ns, "a folded file is not written again"


async def test_burst_beyond_curve_size_writes_folded_curves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curves, file = JobCurves(tmp_path, _no_problem), tmp_path / "abcd.jsonl"
    for number in range(60):
        curves.take("abcd", piece(number), AT)
    monkeypatch.delattr(CurveFiles, "append")  # unwritten values beyond the curves are dropped
    await curves.write()
    assert len(file.read_text().splitlines()) == 1
    assert CurveFiles(tmp_path).read("abcd") == await curves.lines("abcd")


async def test_curves_out_of_memory_are_folded_at_job_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchpool_scheduler.service.ledger.job_curves.MOST_HELD", 0)
    curves, file = JobCurves(tmp_path, _no_problem), tmp_path / "abcd.jsonl"
    for number in range(2):
        curves.take("abcd", piece(number, steps=3), AT)
        await curves.write()
    curves.take("efgh", piece(0, steps=3), AT)
    assert curves.newest("abcd") is None
    before = CurveFiles(tmp_path).read("abcd")
    curves.ended(["abcd"])
    await curves.write()
    assert len(file.read_text().splitlines()) == 1
    assert CurveFiles(tmp_path).read("abcd") == before


async def test_values_of_failed_write_are_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems: list[str | None] = []
    curves = JobCurves(tmp_path, lambda topic, text: problems.append(text))
    curves.take("abcd", piece(0, steps=2), AT)
    with monkeypatch.context() as full:
        full.setattr("benchpool_scheduler.store.curve_files._write", _disk_full)
        await curves.write()
    curves.take("abcd", piece(1, steps=2), AT)
    await curves.write()
    assert problems == [
        "Curves of jobs cannot be written (No space left on device); free the disk.",
        None,
    ]
    assert CurveFiles(tmp_path).read("abcd") == await curves.lines("abcd")


async def test_ended_job_has_folded_file(tmp_path: Path) -> None:
    runtime, clock = ScriptedRuntime(devices(9)), FakeClock()
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper())
        (worker,) = await runtime.until_launched(1)
        for step in (1, 2, 3):
            values = (ReportedValue("loss", 1.0 / step, clock.now(), step),)
            runtime.report(WorkerMetrics(worker, clock.now(), values))
            await until_job(pool, job.id, _shows(1.0 / step))
            await pool.curves.write()
        file = tmp_path / "scheduler" / FOLDER / f"{job.id}.jsonl"
        assert len(file.read_text().splitlines()) == 3
        runtime.end(worker, 0, EndedBy.ITSELF, at=clock.now())
        await reached(pool, job.id, State.SUCCEEDED)
        await pool.curves.write()
        assert len(file.read_text().splitlines()) == 1


def _shows(loss: float) -> Callable[[Job], bool]:
    return lambda now: now.metrics == {"loss": loss}


def _no_problem(topic: str, text: str | None) -> None:
    assert text is None, topic


def _disk_full(descriptor: int, data: bytes, before: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
