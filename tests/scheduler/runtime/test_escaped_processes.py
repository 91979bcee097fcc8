"""Processes that leave session, parent and environment die before the next attempt begins.

Most accounts and containers cannot create cgroups, so the tests make the cgroup name invalid.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.runtime import EndedBy, WorkerId
from benchpool_scheduler.runtime.local import LocalRuntime, simulated, supervisors
from benchpool_scheduler.worker import process_identity
from benchpool_scheduler.worker.supervisor import process_notes
from benchpool_support.readable import readable_within
from benchpool_support.waiting import PATIENCE_S, until_async
from benchpool_support.workers import (
    Listener,
    cancel,
    end_all_workers,
    python_launch,
    until_logged,
)

ESCAPE = (
    "import subprocess, time\n"
    "subprocess.run(['sh', '-c', 'env -i setsid sleep 1000 & echo pid $!'])\n"
    "print('all up'); time.sleep(1000)"
)
"""Program with a daemon that has its own session, no living parent and an empty environment."""


@pytest.fixture(autouse=True)
def no_cgroup(monkeypatch: pytest.MonkeyPatch) -> None:
    config = supervisors.supervisor_config
    monkeypatch.setattr(
        supervisors,
        "supervisor_config",
        lambda *arguments: {**config(*arguments), "name": "no/such/group"},
    )


@pytest.fixture
def escaped() -> Iterator[list[int]]:
    """Yield a list of pids that are killed at the end of the test."""
    found: list[int] = []
    yield found
    for pid in found:
        if process_identity.start_ticks(pid) is not None:
            os.kill(pid, signal.SIGKILL)


def folder_of(runtime: LocalRuntime, worker: WorkerId) -> Path:
    return runtime.state / f"jobs/{worker.job}/attempts/{worker.attempt}/worker-{worker.worker}"


async def escapee(runtime: LocalRuntime, worker: WorkerId) -> int:
    """Return the pid of the daemon after the supervisor has noted it."""
    log = (await until_logged(runtime, worker, b"all up")).decode()
    pid = int(log.split()[1])
    await until_async(lambda: pid in dict(process_notes.noted(str(folder_of(runtime, worker)))))
    assert process_identity.stat_fields(pid)[1] != str(os.getpid()).encode()  # type: ignore[index]
    return pid


def supervisor_of(runtime: LocalRuntime, worker: WorkerId) -> int:
    return int(json.loads((folder_of(runtime, worker) / "process.json").read_text())["pid"])


async def test_escaped_process_is_killed_before_supervisor_death_is_reported(
    runtime: LocalRuntime, listener: Listener, escaped: list[int]
) -> None:
    launch = python_launch(ESCAPE)
    await runtime.start(launch)
    escaped.append(await escapee(runtime, launch.worker))
    os.kill(supervisor_of(runtime, launch.worker), signal.SIGKILL)
    assert await listener.exit_of(launch.worker) == (None, EndedBy.LOST)
    assert process_identity.start_ticks(escaped[0]) is None


async def test_escaped_process_is_killed_before_next_service_reports_loss(
    state: Path, escaped: list[int]
) -> None:
    first = LocalRuntime(state, simulated(1))
    await first.open([])
    launch = python_launch(ESCAPE)
    await first.start(launch)
    escaped.append(await escapee(first, launch.worker))
    await first.close()
    os.kill(supervisor_of(first, launch.worker), signal.SIGKILL)
    second = LocalRuntime(state, simulated(1))
    await second.open([launch.worker])
    listener = Listener(second)
    assert await listener.exit_of(launch.worker) == (None, EndedBy.LOST)
    assert process_identity.start_ticks(escaped[0]) is None
    await listener.close()
    await second.close()


async def test_command_ends_with_supervisor_without_scheduler(state: Path) -> None:
    """Without this, an unrecorded command could finish and run again."""
    first = LocalRuntime(state, simulated(1))
    await first.open([])
    launch = python_launch("import os, time; print(os.getpid(), 'up'); time.sleep(600)")
    await first.start(launch)
    pid = int((await until_logged(first, launch.worker, b"up")).split()[0])
    supervisor = supervisor_of(first, launch.worker)
    await first.close()
    command = os.pidfd_open(pid)
    try:
        os.kill(supervisor, signal.SIGKILL)
        assert await asyncio.to_thread(readable_within, PATIENCE_S, [command]) == [command]
    finally:
        os.close(command)
        await end_all_workers(state)


async def test_later_children_of_escaped_process_are_killed(
    runtime: LocalRuntime, listener: Listener, escaped: list[int], tmp_path: Path
) -> None:
    go, late = tmp_path / "go", tmp_path / "late"
    script = (
        f"while [ ! -e {go} ]; do /bin/sleep 0.05; done; /bin/sleep 1000 & echo $! > {late}; wait"
    )
    launch = python_launch(
        "import subprocess, time\n"
        f"script = {script!r}\n"
        "subprocess.run(['sh', '-c', 'env -i setsid /bin/sh -c \"$0\" & echo pid $!', script])\n"
        "print('all up'); time.sleep(1000)"
    )
    await runtime.start(launch)
    escaped.append(await escapee(runtime, launch.worker))
    os.kill(supervisor_of(runtime, launch.worker), signal.SIGSTOP)
    go.touch()
    await until_async(lambda: late.exists() and late.read_text().strip())
    escaped.append(int(late.read_text()))
    os.kill(supervisor_of(runtime, launch.worker), signal.SIGKILL)
    assert await listener.exit_of(launch.worker) == (None, EndedBy.LOST)
    assert [process_identity.start_ticks(pid) for pid in escaped] == [None, None]


async def test_reused_pid_is_not_killed(
    runtime: LocalRuntime, listener: Listener, escaped: list[int]
) -> None:
    launch = python_launch(ESCAPE)
    await runtime.start(launch)
    escaped.append(await escapee(runtime, launch.worker))
    bystander = await asyncio.create_subprocess_exec("sleep", "1000")
    ticks = process_identity.start_ticks(bystander.pid)
    assert ticks is not None
    notes = folder_of(runtime, launch.worker) / "processes.json"
    os.kill(supervisor_of(runtime, launch.worker), signal.SIGSTOP)
    record = json.loads(notes.read_text())
    record["processes"].append([bystander.pid, ticks - 1])
    notes.write_text(json.dumps(record))
    os.kill(supervisor_of(runtime, launch.worker), signal.SIGKILL)
    await listener.ended(launch.worker)
    assert bystander.returncode is None
    assert process_identity.start_ticks(bystander.pid) == ticks
    bystander.kill()
    await bystander.wait()


async def test_cancel_kills_escaped_process(
    runtime: LocalRuntime, listener: Listener, escaped: list[int]
) -> None:
    launch = python_launch(ESCAPE)
    await runtime.start(launch)
    escaped.append(await escapee(runtime, launch.worker))
    await runtime.stop(launch.worker, cancel(0.5))
    await listener.ended(launch.worker)
    assert process_identity.start_ticks(escaped[0]) is None
