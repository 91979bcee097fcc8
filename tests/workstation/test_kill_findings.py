"""Lost, duplicated and wrongly ended jobs after kills of any process."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchpool_scheduler.contract import Attempt, Job, State
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_scheduler.worker import supervisor_process
from benchpool_support import hands
from benchpool_support.findings import Finding, KilledSupervisor, Sent
from benchpool_support.hands import WorkerStatements
from benchpool_support.killable import kill_supervisor
from benchpool_support.waiting import until_async
from benchpool_support.workers import Listener, end_all_workers, python_launch, until_logged

SLOW_COPY = """
import sys, time
sys.path.append(sys.argv[1])
from worker.supervisor import results
results._carry_all = lambda *_: time.sleep(600)
"""

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = 3

Kills = dict[tuple[int, int], KilledSupervisor]
"""Killed supervisors by attempt and worker."""


def a_job(state: State, code: int | None, workers: int = 1) -> Job:
    return Job(
        id="job", name="job", project="joe", user="joe", state=state, reason=None, gpus=1,
        workers=workers, min_workers=workers, priority=50, preemptible=True, over_quota=False,
        attempt=1, submitted=NOW, started=NOW, ended=NOW, exit_code=code, progress=None,
        estimated_start=None, preemptions=[], url="",
    )  # fmt: skip


def judged(
    job: Job,
    ended_by: list[str],
    done: dict[tuple[int, int], float],
    killed: Kills,
    code: int = 0,
    *,
    cancelled: bool = False,
) -> Finding:
    """Return the finding for one job, from the ends of its attempts and its workers' end times."""
    statements = WorkerStatements()
    for (attempt, rank), at in done.items():
        statements.begun["job"].add(attempt)
        statements.done["job", attempt][rank] = (hands.digest_of(STEPS), code)
        statements.done_at["job", attempt][rank] = at
    attempts = [
        Attempt(number, NOW, NOW, None, by, [], []) for number, by in enumerate(ended_by, start=1)
    ]

    def killed_of(_: str, attempt: int) -> dict[int, KilledSupervisor]:
        return {rank: one for (number, rank), one in killed.items() if number == attempt}

    finding = Finding()
    sent = {"job": Sent(STEPS, code, cancelled)}
    finding.judge(sent, [(job, attempts)], statements, killed_of, ["joe"])
    return finding


def wrong(finding: Finding) -> dict[str, int]:
    found: dict[str, Any] = {name: it for name, it in vars(finding).items() if name != "unseen"}
    return {name: len(it) for name, it in found.items() if it}


WELL = a_job(State.SUCCEEDED, 0)
FAILED = a_job(State.FAILED, 3)
TWICE = {(1, 0): 10.0, (2, 0): 20.0}
"""End times of a job with two completed attempts."""


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(judged(WELL, ["itself"], {(1, 0): 10.0}, {}), {}, id="it ended well"),
        pytest.param(judged(WELL, ["lost", "itself"], TWICE, {}), {"doubled": 1},
                     id="it is on record as lost, and nobody was killed"),
        pytest.param(judged(WELL, ["lost", "itself"], TWICE, {(1, 0): KilledSupervisor(False, 11)}),
                     {}, id="its supervisor was killed before it could record the end"),
        pytest.param(judged(WELL, ["lost", "itself"], TWICE, {(1, 0): KilledSupervisor(True, 11)}),
                     {"doubled": 1}, id="its supervisor was killed after it had recorded the end"),
        pytest.param(judged(WELL, ["lost", "itself"], TWICE, {(1, 0): KilledSupervisor(False, 9)}),
                     {"outlived": 1}, id="it went on after its supervisor's death"),
        pytest.param(judged(FAILED, ["preempt", "itself"], TWICE, {}, 3), {},
                     id="a failure under a wish is that wish fulfilled"),
        pytest.param(judged(FAILED, ["itself", "itself"], TWICE, {}, 3), {"doubled": 1},
                     id="it failed twice"),
        pytest.param(judged(WELL, ["preempt", "itself"], TWICE, {}), {"doubled": 1},
                     id="an end under a wish is an end"),
        pytest.param(judged(a_job(State.CANCELLED, None), ["cancel"], {}, {}, cancelled=True), {},
                     id="it was cancelled"),
        pytest.param(judged(a_job(State.CANCELLED, None), ["cancel"], {}, {}), {"mis_ended": 1},
                     id="nobody had it cancelled"),
        pytest.param(judged(WELL, ["itself"], {}, {}), {"mis_ended": 1}, id="no worker was done"),
        pytest.param(judged(FAILED, ["itself"], {(1, 0): 10.0}, {}), {"mis_ended": 1},
                     id="it was to end well"),
        pytest.param(
            judged(a_job(State.SUCCEEDED, 0, 2), ["lost", "itself"],
                   {**TWICE, (1, 1): 12.0, (2, 1): 21.0},
                   {(1, 0): KilledSupervisor(True, 11), (1, 1): KilledSupervisor(False, 12)}),
            {}, id="of a gang one end was not on record"),
    ],
)  # fmt: skip
def test_recorded_runs_give_expected_findings(found: Finding, expected: dict[str, int]) -> None:
    assert wrong(found) == expected


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[LocalRuntime]:
    runtime = LocalRuntime(tmp_path / "state", simulated(4))
    await runtime.open([])
    yield runtime
    await runtime.close()
    await end_all_workers(tmp_path / "state")


def supervisor(folder: Path) -> psutil.Process:
    return psutil.Process(json.loads((folder / "process.json").read_text())["pid"])


async def test_killed_supervisor_loses_worker_without_record(
    runtime: LocalRuntime,
) -> None:
    launch = python_launch("import os, time; print('up', os.getpid()); time.sleep(600)")
    listener = Listener(runtime)
    await runtime.start(launch)
    log = await until_logged(runtime, launch.worker, b"\n")
    worker = psutil.Process(int(log.split()[1]))
    folder = runtime.state / "jobs" / launch.worker.job / "attempts" / "1" / "worker-0"
    before = time.time()
    killed = await asyncio.to_thread(kill_supervisor, supervisor(folder), folder)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
    assert not killed.recorded
    assert before < killed.gone <= time.time()
    assert await listener.exit_of(launch.worker) == (None, EndedBy.LOST)
    await listener.close()


async def test_supervisor_killed_during_result_copy_keeps_exit(
    runtime: LocalRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_process, "BOOT", SLOW_COPY + supervisor_process.BOOT)
    launch = python_launch("raise SystemExit(7)", output_dir=tmp_path / "home")
    folder = runtime.state / "jobs" / launch.worker.job / "attempts" / "1" / "worker-0"
    listener = Listener(runtime)
    await runtime.start(launch)
    await until_async(lambda: (folder / "exit.json").exists())
    killed = await asyncio.to_thread(kill_supervisor, supervisor(folder), folder)
    assert killed.recorded
    assert await listener.exit_of(launch.worker) == (7, EndedBy.ITSELF)
    await listener.close()
