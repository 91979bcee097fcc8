"""The recorded history as a workload: ended jobs with their net run time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.service.administration.history import DAY_S, History, as_csv, history
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.simulation.replay import trace
from benchpool_scheduler.simulation.replay.report import ReplayOptions, replay
from benchpool_scheduler.store.records import (
    AddJob,
    AttemptRecord,
    Change,
    JobRecord,
    PreemptionRecord,
    SaveAttempt,
    SavePreemption,
)
from benchpool_scheduler.store.sqlite import SqliteStore
from benchpool_support.asking import asking

NOW = 100 * DAY_S
RESTART_S = 60.0


def recorded(folder: Path, changes: Sequence[Change], days: float = 7) -> History:
    """Write changes to a real store, open it again, and read the history."""

    async def life() -> History:
        first = Ledger(SqliteStore(folder))
        await first.open()
        await first.commit(*changes)
        await first.store.close()
        again = Ledger(SqliteStore(folder))
        await again.open()
        found = await history(again, NOW, days, RESTART_S)
        await again.store.close()
        return found

    return asyncio.run(life())


def job(name: str, submitted: float, ended: float | None, **more: Any) -> AddJob:
    state = JobState.RUNNING if ended is None else JobState.SUCCEEDED
    record = JobRecord(
        id=name * 26, name=name, project="vision", user="susan", state=state,
        submitted=NOW + submitted, queued_since=NOW + submitted,
        ended=None if ended is None else NOW + ended, **asking(more),
    )  # fmt: skip
    return AddJob(record, b"{}")


def attempt(name: str, number: int, started: float, ended: float) -> SaveAttempt:
    return SaveAttempt(
        AttemptRecord(
            name * 26,
            number,
            decided=NOW + started,
            workers=(),
            started=NOW + started,
            ended=NOW + ended,
        )
    )


def preemption(name: str, at: float, lost_gpu_s: float, gpus: int) -> SavePreemption:
    return SavePreemption(
        PreemptionRecord(name * 26, 1, NOW + at, "b" * 26, "speech/b", "R15", lost_gpu_s, gpus)
    )


def test_history_row_excludes_wait(tmp_path: Path) -> None:
    found = recorded(
        tmp_path,
        [
            job("a", -9000, -1000, gpus=2, workers=3, priority=75, time_limit_s=9999),
            attempt("a", 1, -4000, -1000),
        ],
    )
    (row,) = found.jobs
    assert (row.submit_s, row.duration_s, row.gpus, row.workers) == (0, 3000, 6, 3)
    assert (row.project, row.user, row.priority, row.time_limit_s) == ("vision", "susan", 75, 9999)


def test_lost_progress_counts_as_preemption_cost(tmp_path: Path) -> None:
    lost = (200 + RESTART_S) * 4
    found = recorded(
        tmp_path,
        [
            job("a", -9000, -1000, gpus=4),
            attempt("a", 1, -9000, -8000),
            attempt("a", 2, -3000, -1000),
            preemption("a", -8000, lost, 4),
        ],
    )
    assert found.jobs[0].duration_s == 1000 + 2000 - 200
    assert (found.costs.restart_s, found.costs.lost_progress_s) == (RESTART_S, 200)


def test_history_rows_are_ordered_by_submission(tmp_path: Path) -> None:
    found = recorded(
        tmp_path,
        [
            job("b", -5000, -100),
            attempt("b", 1, -5000, -100),
            job("a", -9000, -1000),
            attempt("a", 1, -9000, -1000),
        ],
    )
    assert [row.submit_s for row in found.jobs] == [0, 4000]


def test_history_excludes_unstarted_running_and_old_jobs(tmp_path: Path) -> None:
    old = -8 * DAY_S
    found = recorded(
        tmp_path,
        [
            job("a", old, old + 100),
            attempt("a", 1, old, old + 100),
            job("b", -500, -400),
            job("c", -500, None),
            attempt("c", 1, -500, -400),
        ],
    )
    assert found.jobs == ()
    assert found.costs.lost_progress_s == 0


def test_history_is_replayable_as_trace(tmp_path: Path) -> None:
    found = recorded(
        tmp_path / "state",
        [
            job("a", -9000, -1000, gpus=2, workers=2),
            attempt("a", 1, -9000, -1000),
            job("b", -5000, -100, time_limit_s=9000),
            attempt("b", 1, -1000, -100),
        ],
    )
    file = tmp_path / "history.csv"
    file.write_text(as_csv(found.jobs))
    assert trace.read(file) == list(found.jobs)
    summary, _ = replay(ReplayOptions(file, gpus=8))
    assert (summary.jobs, summary.mean_wait_h) == (2, 0)
