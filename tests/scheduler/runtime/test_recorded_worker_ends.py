"""A worker is lost only when none of its processes can run, and a recorded end stays."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.runtime import EndedBy, Launch, WorkerId
from benchpool_scheduler.runtime.local import LocalRuntime, ends, simulated, supervisors
from benchpool_scheduler.runtime.local import runtime as local_runtime
from benchpool_scheduler.worker import supervisor_process
from benchpool_scheduler.worker.folders import Folders
from benchpool_support import failing_calls
from benchpool_support.failing_calls import Fault
from benchpool_support.workers import Listener, cancel, end_all_workers, python_launch, worker_id

PROGRAM = "open({ran!r}, 'a').write('x'); raise SystemExit(7)"

BUSY = """
import os, time
while not os.path.exists({go!r}):
    time.sleep(0.02)
"""
"""First code of a supervisor on a very busy machine: it waits for a file."""

FAILING = """
import sys
sys.path.append(sys.argv[1])
from worker.supervisor import private_folder
def fail(*_):
    raise MemoryError
private_folder.remove = fail
"""


@asynccontextmanager
async def service(state: Path, expected: list[WorkerId]) -> AsyncIterator[LocalRuntime]:
    runtime = LocalRuntime(state, simulated(4))
    await runtime.open(expected)
    try:
        yield runtime
    finally:
        await runtime.close()


@pytest.fixture
async def sweep(state: Path) -> AsyncIterator[None]:
    yield
    await end_all_workers(state)


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that lets supervisors begin; services wait only briefly for them."""
    file = tmp_path / "go"
    boot = BUSY.format(go=str(file)) + supervisor_process.BOOT
    monkeypatch.setattr(supervisor_process, "BOOT", boot)
    monkeypatch.setattr(local_runtime, "INTRODUCTION_S", 0.1)
    return file


def launch_of(ran: Path, worker: WorkerId | None = None) -> Launch:
    return python_launch(PROGRAM.format(ran=str(ran)), worker=worker)


async def test_worker_with_unidentified_supervisor_is_awaited(
    state: Path, go: Path, tmp_path: Path, sweep: None
) -> None:
    ran = tmp_path / "ran"
    launch = launch_of(ran)
    async with service(state, []) as first:
        await first.start(launch)
    async with service(state, [launch.worker]) as second:
        listener = Listener(second)
        await second.start(launch)  # repeated, as after a crash: no effect
        assert listener.seen == []
        go.touch()
        await listener.started(launch.worker)
        assert await listener.exit_of(launch.worker) == (7, EndedBy.ITSELF)
        assert ran.read_text() == "x"
        await listener.close()


async def test_worker_can_be_stopped_before_it_begins(
    state: Path, go: Path, tmp_path: Path, sweep: None
) -> None:
    ran = tmp_path / "ran"
    launch = launch_of(ran)
    async with service(state, []) as first:
        await first.start(launch)
    async with service(state, [launch.worker]) as second:
        listener = Listener(second)
        await second.stop(launch.worker, cancel(5))
        go.touch()
        assert await listener.exit_of(launch.worker) == (None, EndedBy.NOTICE)
        assert not ran.exists()
        await listener.close()


async def test_worker_started_late_by_closing_service_is_not_lost(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sweep: None
) -> None:
    ran = tmp_path / "ran"
    launch = launch_of(ran, worker_id())
    look = supervisors.living
    looked: list[object] = []
    async with service(state, []) as first:

        async def and_then_it_is_started(folder: Path, patience_s: float) -> Any:
            found = await look(folder, patience_s)
            if not looked:
                looked.append(found)
                await first.start(launch)
            return found

        monkeypatch.setattr(supervisors, "living", and_then_it_is_started)
        async with service(state, [launch.worker]) as second:
            listener = Listener(second)
            assert await listener.exit_of(launch.worker) == (7, EndedBy.ITSELF)
            assert (looked, ran.read_text()) == ([None], "x")
            await listener.close()


async def test_worker_lock_is_held_while_loss_is_recorded(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conclude, locks = ends.without_record, []

    def watched(folders: Folders, worker: WorkerId, *args: Any, **more: Any) -> dict[str, object]:
        locks.append(supervisor_process.take_lock(folders.worker(worker)))
        return conclude(folders, worker, *args, **more)

    monkeypatch.setattr(ends, "without_record", watched)
    worker = worker_id()
    async with service(state, [worker]) as runtime:
        listener = Listener(runtime)
        assert await listener.exit_of(worker) == (None, EndedBy.LOST)
        assert locks == [None]
        await listener.close()


@pytest.mark.parametrize("call", ["pipe", "fork"])
async def test_exit_code_survives_failed_copy_of_results(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, sweep: None
) -> None:
    library = failing_calls.compiled(tmp_path)
    if library is None:
        pytest.skip("there is no C compiler")
    fault, home = tmp_path / "fault", tmp_path / "home"
    own = failing_calls.environment(state, library) | {"FAULT_WHO": "supervisor"}
    spawn: Any = os.posix_spawn
    monkeypatch.setattr(
        os, "posix_spawn", lambda path, argv, env, **more: spawn(path, argv, own, **more)
    )
    Fault(fault).arm("supervisor", call, errno.EAGAIN, 0)
    armed = fault.read_text()
    fault.unlink()  # armed by the last act of the worker, so that it hits the copy
    program = (
        "import os; open(os.environ['OUT'] + '/result', 'w').write('42')\n"
        f"open({str(fault)!r} + '.next', 'w').write({armed!r})\n"
        f"os.rename({str(fault)!r} + '.next', {str(fault)!r})"
    )
    worker = worker_id()
    out = state / "jobs" / worker.job / "output"
    launch = python_launch(program, worker=worker, output_dir=home, env={"OUT": str(out)})
    async with service(state, []) as runtime:
        listener = Listener(runtime)
        await runtime.start(launch)
        assert await listener.exit_of(worker) == (0, EndedBy.ITSELF)
        await listener.close()
    assert fault.with_name("fault.done").exists()
    assert (home / "result").read_text() == "42"


async def test_exit_code_survives_later_supervisor_failure(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sweep: None
) -> None:
    monkeypatch.setattr(supervisor_process, "BOOT", FAILING + supervisor_process.BOOT)
    launch = launch_of(tmp_path / "ran")
    async with service(state, []) as runtime:
        listener = Listener(runtime)
        await runtime.start(launch)
        assert await listener.exit_of(launch.worker) == (7, EndedBy.ITSELF)
        await listener.close()
