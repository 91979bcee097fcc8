"""A shell inside a running worker: environment, terminal and end with the worker."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.runtime import EndedBy, WorkerEnded, WorkerId
from benchpool_scheduler.runtime.local import LocalRuntime
from benchpool_support.typed_shells import CATCHES, CATCHING, CAUGHT, TypedShell, ready
from benchpool_support.workers import Listener, cancel, python_launch, until_logged

SLEEPS = "print('up', flush=True); import time; time.sleep(1000)"


async def entered(runtime: LocalRuntime, worker: WorkerId) -> TypedShell:
    return await ready(await runtime.shell(worker, 30, 100, "xterm"))


async def test_shell_has_environment_folder_and_terminal_size_of_worker(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path
) -> None:
    launch = python_launch(SLEEPS, working_dir=tmp_path, env={"PATH": "/usr/bin:/bin", "MARK": "m"})
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    shell = await entered(runtime, launch.worker)
    await shell.channel.write(b'echo "<$MARK $CUDA_VISIBLE_DEVICES $(pwd) $(stty size) $TERM>"\n')
    gpus = ",".join(launch.gpus)
    await shell.until(f"<m {gpus} {tmp_path} 30 100 xterm>".encode())
    shell.channel.resize(10, 50)
    await shell.channel.write(b'echo "<$(stty size)>"; exit 7\n')
    assert await shell.end() == 7
    assert b"<10 50>" in shell.printed
    await runtime.stop(launch.worker, cancel(1.0))
    assert (await listener.exit_of(launch.worker))[1] is EndedBy.NOTICE


@pytest.fixture(params=[signal.SIG_DFL, signal.SIG_IGN], ids=["by a person", "in the background"])
def service_begun(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set the SIGINT handling of the service: default, or ignored as in a shell's background
    jobs.
    """
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("service_begun")
async def test_ctrl_c_interrupts_command_and_worker_end_closes_shell(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(SLEEPS, env={"PATH": "/usr/bin:/bin"})
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    shell = await entered(runtime, launch.worker)
    await shell.channel.write(CATCHES)
    await shell.until(CATCHING)
    await shell.channel.write(b"\x03")
    await shell.until(CAUGHT)
    await runtime.stop(launch.worker, cancel(1.0))
    await shell.end()
    assert (await listener.exit_of(launch.worker))[1] is EndedBy.NOTICE


async def test_hang_up_ends_shell_and_keeps_worker(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(SLEEPS, env={"PATH": "/usr/bin:/bin"})
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    shell = await entered(runtime, launch.worker)
    await shell.channel.close()
    assert await shell.channel.read() == b""
    assert not any(isinstance(event, WorkerEnded) for event in listener.seen)
    await runtime.stop(launch.worker, cancel(1.0))
    assert (await listener.exit_of(launch.worker))[1] is EndedBy.NOTICE


async def test_shell_in_ended_worker_is_rejected(runtime: LocalRuntime) -> None:
    with pytest.raises(ProcessLookupError):
        await runtime.shell(WorkerId("gone", 1, 0), 24, 80, "xterm")
