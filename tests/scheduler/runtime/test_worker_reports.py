"""Workers that report faster than one piece a look are read to the end without delay for others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from benchpool_scheduler.runtime import WorkerEvent, WorkerId, WorkerMetrics, WorkerProgress
from benchpool_scheduler.runtime.local.running_worker import RunningWorker
from benchpool_scheduler.runtime.local.worker_reports import PIECES, ReportLooks, WorkerReports
from benchpool_scheduler.worker import records
from benchpool_scheduler.worker.folders import Folders
from benchpool_scheduler.worker.metric_lines import VALUES

BUSY, OTHER = WorkerId("busy", 1, 0), WorkerId("other", 1, 0)


class Looks:
    """Looks at workers without processes, and their events."""

    def __init__(self, state: Path) -> None:
        self.folders = Folders(state)
        self.running: dict[WorkerId, RunningWorker] = {}
        self.events: list[WorkerEvent] = []
        self.all = ReportLooks(self.running, self.folders, lambda run: None, self.events.append)

    def write(self, worker: WorkerId, values: int) -> None:
        """Let a worker write lines of one value."""
        exchange = self.folders.exchange(worker)
        exchange.mkdir(parents=True, exist_ok=True)
        lines = (
            json.dumps({"at": 1.0, "step": step, "values": {"loss": 1.0}}) + "\n"
            for step in range(values)
        )
        (exchange / records.METRICS).write_text("".join(lines))

    def runs(self, worker: WorkerId) -> RunningWorker:
        """Let a worker run."""
        run = RunningWorker(worker, self.folders.worker(worker), None, None, expected=True)  # type: ignore[arg-type]
        run.start_reported = True
        self.running[worker] = run
        return run

    def read(self, worker: WorkerId) -> int:
        """Return the number of values that were read of a worker."""
        found = (it for it in self.events if isinstance(it, WorkerMetrics))
        return sum(len(it.values) for it in found if it.worker == worker)


@pytest.fixture
def looks(tmp_path: Path) -> Looks:
    return Looks(tmp_path)


async def test_burst_is_read_in_one_look(looks: Looks) -> None:
    looks.write(BUSY, 20 * VALUES + 5)
    looks.runs(BUSY)
    looks.all.look()
    assert looks.read(BUSY) == VALUES
    await looks.all.catch_up()
    assert looks.read(BUSY) == 20 * VALUES + 5


async def test_busy_worker_does_not_delay_another(looks: Looks) -> None:
    looks.write(BUSY, 2 * PIECES * VALUES)
    looks.write(OTHER, 2 * VALUES + 5)
    looks.runs(BUSY)
    looks.runs(OTHER)
    looks.all.look()
    await looks.all.catch_up()
    assert looks.read(OTHER) == 2 * VALUES + 5
    assert looks.read(BUSY) <= (PIECES + 2) * VALUES, "the number of pieces in a look is limited"
    order = [it.worker for it in looks.events if isinstance(it, WorkerMetrics)]
    assert order.index(OTHER) <= 1
    assert OTHER not in order[6:], "each round reads one piece of each worker"


async def test_ended_worker_is_no_longer_read(looks: Looks) -> None:
    looks.write(BUSY, 3 * VALUES)
    run = looks.runs(BUSY)
    looks.all.look()
    catching_up = asyncio.create_task(looks.all.catch_up())
    await asyncio.sleep(0)
    del looks.running[BUSY]
    await catching_up
    assert looks.read(BUSY) == VALUES
    await looks.all.finish(BUSY, run.reports)
    assert looks.read(BUSY) == 3 * VALUES


async def test_everything_of_ended_worker_is_reported(looks: Looks) -> None:
    looks.write(OTHER, (PIECES + 3) * VALUES)
    progress = {"fraction": 1.0, "text": "done"}
    (looks.folders.exchange(OTHER) / records.PROGRESS).write_text(json.dumps(progress))
    await looks.all.finish(OTHER, WorkerReports(OTHER))
    assert looks.read(OTHER) == (PIECES + 3) * VALUES
    reported = [it for it in looks.events if isinstance(it, WorkerProgress)]
    assert [(it.fraction, it.text) for it in reported] == [(1.0, "done")]
