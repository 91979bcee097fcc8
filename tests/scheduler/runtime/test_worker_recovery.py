"""Workers outlive the scheduler; a new one finds them by boot ID, pid and start time."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from benchpool_scheduler.runtime import EndedBy, WorkerEnded, WorkerId, WorkerStarted
from benchpool_scheduler.runtime.local import (
    LocalRuntime,
    ends,
    orphans,
    simulated,
    supervisors,
)
from benchpool_scheduler.worker import process_identity
from benchpool_scheduler.worker.supervisor import containment
from benchpool_support import FOLDER
from benchpool_support.waiting import until, until_async
from benchpool_support.workers import (
    Listener,
    cancel,
    end_all_workers,
    until_logged,
    whole_log,
    worker_id,
)

SCHEDULER = """
import asyncio, sys
from pathlib import Path
from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_support.workers import Listener, python_launch, until_logged

async def main(state, job, program, count):
    runtime = LocalRuntime(Path(state), simulated(4))
    await runtime.open([])
    listener = Listener(runtime)
    for index in range(int(count)):
        worker = WorkerId(job, 1, index)
        await runtime.start(python_launch(program, worker=worker))
        await until_logged(runtime, worker, b"up")
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""


async def run_and_kill_a_scheduler(
    state: Path, job: str, program: str, count: int = 1
) -> list[WorkerId]:
    """Start workers under a scheduler in its own process, then kill the scheduler with SIGKILL."""
    scheduler = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", SCHEDULER, str(state), job, textwrap.dedent(program), str(count)),
        env={**os.environ, "PYTHONPATH": FOLDER},
        stdout=asyncio.subprocess.PIPE,
    )
    assert scheduler.stdout is not None
    assert await asyncio.wait_for(scheduler.stdout.readline(), 60) == b"ready\n"
    scheduler.send_signal(signal.SIGKILL)
    await scheduler.wait()
    return [WorkerId(job, 1, index) for index in range(count)]


@asynccontextmanager
async def next_scheduler(
    state: Path, expected: list[WorkerId]
) -> AsyncIterator[tuple[LocalRuntime, Listener]]:
    runtime = LocalRuntime(state, simulated(4))
    await runtime.open(expected)
    listener = Listener(runtime)
    try:
        yield runtime, listener
    finally:
        await listener.close()
        await runtime.close()
        await end_all_workers(state)


def folder(state: Path, worker: WorkerId) -> Path:
    return state / "jobs" / worker.job / "attempts" / "1" / f"worker-{worker.worker}"


async def test_worker_survives_scheduler_kill_and_keeps_exit_code(state: Path) -> None:
    flag = state / "go"
    workers = await run_and_kill_a_scheduler(
        state,
        worker_id().job,
        f"""
        import os, time
        print('up')
        while not os.path.exists({str(flag)!r}): time.sleep(0.02)
        print('done'); raise SystemExit(7)
        """,
        count=3,
    )
    async with next_scheduler(state, workers) as (runtime, listener):
        for worker in workers:
            assert isinstance(await listener.started(worker), WorkerStarted)
        flag.touch()
        for worker in workers:
            assert await listener.exit_of(worker) == (7, EndedBy.ITSELF)
            assert await whole_log(runtime, worker) == b"up\ndone\n"


async def test_end_without_scheduler_is_reported_with_exit_code(state: Path) -> None:
    (worker,) = await run_and_kill_a_scheduler(
        state, worker_id().job, "print('up'); import time; time.sleep(0.3); raise SystemExit(7)"
    )
    await until_async(lambda: (folder(state, worker) / "exit.json").exists())
    async with next_scheduler(state, [worker]) as (_, listener):
        assert await listener.exit_of(worker) == (7, EndedBy.ITSELF)


async def test_worker_without_folder_is_killed_before_loss_is_reported(state: Path) -> None:
    """The GPUs of a lost worker are assigned to the next job."""
    pids = state.parent / "pid"
    (worker,) = await run_and_kill_a_scheduler(
        state,
        worker_id().job,
        f"""
        import os, time
        open({str(pids)!r}, 'w').write(str(os.getpid())); print('up'); time.sleep(600)
        """,
    )
    pid = int(pids.read_text())
    shutil.rmtree(state / "jobs")
    assert [(it.pid, it.job) for it in orphans.find(state)] == [(pid, worker.job)]
    async with next_scheduler(state, [worker]) as (_, listener):
        end = await listener.ended(worker)
        assert (end.by, end.text) == (EndedBy.LOST, ends.GONE_TEXT)
        assert process_identity.start_ticks(pid) is None
        assert orphans.find(state) == []


async def test_worker_of_earlier_scheduler_can_be_stopped(state: Path) -> None:
    (worker,) = await run_and_kill_a_scheduler(
        state, worker_id().job, "print('up'); import time; time.sleep(600)"
    )
    async with next_scheduler(state, [worker]) as (runtime, listener):
        await runtime.stop(worker, cancel(5))
        assert await listener.exit_of(worker) == (143, EndedBy.NOTICE)


async def test_start_finds_worker_of_earlier_scheduler(state: Path) -> None:
    from benchpool_support.workers import python_launch

    (worker,) = await run_and_kill_a_scheduler(
        state, worker_id().job, "print('up'); import time; time.sleep(600)"
    )
    async with next_scheduler(state, [worker]) as (runtime, listener):
        await runtime.start(python_launch("print('a second one')", worker=worker))
        await listener.started(worker)
        assert await whole_log(runtime, worker) == b"up\n"


async def test_unexpected_worker_is_listed_and_ended_on_request(
    state: Path,
) -> None:
    (worker,) = await run_and_kill_a_scheduler(
        state, worker_id().job, "import os, time; print('up', os.getpid()); time.sleep(600)"
    )
    pid = int((folder(state, worker) / "log").read_text().split()[1])
    runtime = LocalRuntime(state, simulated(4))
    await runtime.open([])
    (unexpected,) = runtime.unexpected_workers()
    assert (unexpected.worker, unexpected.since is not None) == (worker, True)
    assert unexpected.variables["BENCHPOOL_NOTICE_FILE"].startswith(str(folder(state, worker)))
    assert os.path.exists(f"/proc/{pid}")
    await runtime.end(worker, cancel(5))
    assert not os.path.exists(f"/proc/{pid}")
    assert runtime.unexpected_workers() == ()
    await runtime.close()


async def test_adopted_worker_is_reported_as_started(state: Path) -> None:
    (worker,) = await run_and_kill_a_scheduler(
        state, worker_id().job, "print('up'); import time; time.sleep(600)"
    )
    async with next_scheduler(state, []) as (runtime, listener):
        await runtime.adopt(worker)
        assert isinstance(await listener.started(worker), WorkerStarted)
        await runtime.stop(worker, cancel(5))
        assert await listener.exit_of(worker) == (143, EndedBy.NOTICE)


async def test_worker_is_lost_after_machine_restart(state: Path) -> None:
    (worker,) = await run_and_kill_a_scheduler(
        state, worker_id().job, "import os, time; print('up', os.getppid()); time.sleep(600)"
    )
    where = folder(state, worker)
    supervisor = int((where / "log").read_text().split()[1])
    os.kill(supervisor, signal.SIGKILL)
    record = json.loads((where / "process.json").read_text())
    # After the restart another process has the pid, here the process of the test.
    record |= {"boot_id": "0" * 8, "pid": os.getpid(), "start_ticks": record["start_ticks"]}
    (where / "process.json").write_text(json.dumps(record))
    async with next_scheduler(state, [worker]) as (_, listener):
        ended = await listener.ended(worker)
        assert (ended.exit_code, ended.by) == (None, EndedBy.LOST)
        assert ended.text is not None
        assert "restarted" in ended.text


async def test_reused_pid_is_not_taken_for_worker(
    state: Path,
) -> None:
    (worker,) = await run_and_kill_a_scheduler(
        state, worker_id().job, "import os, time; print('up', os.getppid()); time.sleep(600)"
    )
    where = folder(state, worker)
    os.kill(int((where / "log").read_text().split()[1]), signal.SIGKILL)
    record = json.loads((where / "process.json").read_text())
    (where / "process.json").write_text(json.dumps(record | {"pid": os.getpid()}))
    async with next_scheduler(state, [worker]) as (runtime, listener):
        assert (await listener.ended(worker)).by is EndedBy.LOST
        await runtime.stop(worker, cancel(1))  # the test process gets no signal


def test_process_is_identified_by_boot_pid_and_start_time() -> None:
    us = {
        "boot_id": process_identity.boot_id(),
        "pid": os.getpid(),
        "start_ticks": process_identity.start_ticks(os.getpid()),
    }
    found = supervisors.find(us)
    assert found is not None
    os.close(found.pidfd)
    assert supervisors.find(us | {"boot_id": "another"}) is None
    assert supervisors.find(us | {"start_ticks": 1}) is None
    assert supervisors.find(us | {"pid": 2**22 + 1}) is None
    assert supervisors.find({}) is None


def test_process_lives_while_any_thread_lives() -> None:
    stays = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    with subprocess.Popen([sys.executable, "-c", stays]) as process:
        until(
            lambda: process_identity.stat_fields(process.pid),
            holds=lambda fields: not fields or fields[0] == b"Z",
        )
        ticks = process_identity.start_ticks(process.pid)
        assert ticks is not None
        containment.send([(process.pid, ticks)], signal.SIGKILL)
        assert process.wait(120) == -signal.SIGKILL
    assert process_identity.start_ticks(process.pid) is None


async def test_expected_worker_without_record_is_lost(state: Path) -> None:
    worker = worker_id()
    async with next_scheduler(state, [worker]) as (runtime, listener):
        assert (await listener.ended(worker)).by is EndedBy.LOST
        assert (await runtime.read_log(worker, 0, 10)).ended
    async with next_scheduler(state, [worker]) as (_, listener):
        await listener.ended(worker)
        assert [type(event) for event in listener.seen] == [WorkerEnded]


async def test_log_is_followed_across_schedulers_without_gap(state: Path) -> None:
    (worker,) = await run_and_kill_a_scheduler(
        state,
        worker_id().job,
        """
        import time
        print('up')
        for n in range(300): print('line', n); time.sleep(0.005)
        """,
    )
    async with next_scheduler(state, [worker]) as (runtime, _):
        log = await until_logged(runtime, worker, b"line 299\n")
    expected = b"up\n" + b"".join(b"line %d\n" % n for n in range(300))
    assert log == expected


STARTING = """
import asyncio, sys
from pathlib import Path
from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_support.workers import python_launch

async def main(state, job, program, count):
    runtime = LocalRuntime(Path(state), simulated(4))
    await runtime.open([])
    print("ready", flush=True)
    for index in range(int(count)):
        await runtime.start(python_launch(program, worker=WorkerId(job, 1, index)))
        await asyncio.sleep(0.005)
    await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("killed_after_ms", [0, 2, 5, 10, 20, 40, 80, 160])
async def test_workers_run_at_most_once_after_kill_during_start(
    state: Path, tmp_path: Path, killed_after_ms: int
) -> None:
    program = (
        "import os, time\n"
        f"open({str(tmp_path)!r} + '/run-' + os.environ['NODE_RANK'], 'a').write('x')\n"
        "time.sleep(0.2); raise SystemExit(7)"
    )
    job = worker_id().job
    workers = [WorkerId(job, 1, index) for index in range(6)]
    scheduler = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", STARTING, str(state), job, program, str(len(workers))),
        env={**os.environ, "PYTHONPATH": FOLDER},
        stdout=asyncio.subprocess.PIPE,
    )
    assert scheduler.stdout is not None
    await asyncio.wait_for(scheduler.stdout.readline(), 60)
    await asyncio.sleep(killed_after_ms / 1000)
    scheduler.send_signal(signal.SIGKILL)
    await scheduler.wait()
    async with next_scheduler(state, workers) as (_, listener):
        for worker in workers:
            code, by = await listener.exit_of(worker)
            runs = tmp_path / f"run-{worker.worker}"
            if by is EndedBy.ITSELF:
                assert (code, runs.read_text()) == (7, "x")
            else:
                assert (by, runs.exists()) == (EndedBy.LOST, False)
