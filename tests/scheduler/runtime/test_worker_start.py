"""The environment of a starting worker, and the events that the service reports."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import psutil

from benchpool_scheduler.runtime import EndedBy, WorkerId, WorkerStarted
from benchpool_scheduler.runtime.local import LocalRuntime
from benchpool_scheduler.worker import job_package
from benchpool_support.workers import (
    Listener,
    python_launch,
    until_logged,
    whole_log,
    worker_id,
)


async def test_exit_code_of_command_is_kept(runtime: LocalRuntime, listener: Listener) -> None:
    launch = python_launch("raise SystemExit(7)")
    await runtime.start(launch)
    assert await listener.exit_of(launch.worker) == (7, EndedBy.ITSELF)


async def test_signal_end_is_reported_as_shell_exit_code(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    await runtime.start(launch)
    assert await listener.exit_of(launch.worker) == (139, EndedBy.ITSELF)


async def test_started_event_precedes_ended_event(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch("pass")
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    first = listener.seen[0]
    assert isinstance(first, WorkerStarted)
    assert first.at <= ended.at


async def test_environment_has_only_given_and_documented_variables(
    runtime: LocalRuntime, listener: Listener, state: Path
) -> None:
    launch = python_launch(
        "import json, os; print(json.dumps(dict(os.environ)))",
        env={"PATH": "/usr/bin:/bin", "SEED": "1", "NAME_WITH_UMLAUT": "Jürgen"},
        gpus=("GPU-a", "GPU-b"),
    )
    await runtime.start(launch)
    await listener.ended(launch.worker)
    job = state / "jobs" / launch.worker.job
    exchange = job / "attempts" / "1" / "worker-0" / "exchange"
    found = json.loads(await whole_log(runtime, launch.worker))
    found.pop("LC_CTYPE", None)  # set by the Python of the command itself
    assert found == {
        "PATH": "/usr/bin:/bin",
        "SEED": "1",
        "NAME_WITH_UMLAUT": "Jürgen",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": str(job_package.place(state)),
        "BENCHPOOL_CHECKPOINT_DIR": str(job / "checkpoint"),
        "BENCHPOOL_OUTPUT_DIR": str(job / "output"),
        "BENCHPOOL_NOTICE_FILE": str(exchange / "notice.json"),
        "BENCHPOOL_PROGRESS_FILE": str(exchange / "progress.json"),
        "BENCHPOOL_METRICS_FILE": str(exchange / "metrics.jsonl"),
        "BENCHPOOL_RUNS_FILE": str(exchange / "runs.json"),
        "CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "NNODES": "1",
        "NODE_RANK": "0",
        "NPROC_PER_NODE": "2",
        "PET_MASTER_ADDR": "127.0.0.1",
        "PET_MASTER_PORT": "29500",
        "PET_NNODES": "1",
        "PET_NODE_RANK": "0",
        "PET_NPROC_PER_NODE": "2",
    }


async def test_environment_secrets_are_not_stored_in_state_folder(
    runtime: LocalRuntime, listener: Listener, state: Path
) -> None:
    launch = python_launch(
        "import time; print('up'); time.sleep(60)", env={"TOKEN": "canary-5f1d", "PATH": "/bin"}
    )
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    files = [path for path in state.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"canary-5f1d" in path.read_bytes()]


async def test_worker_gets_own_session_empty_stdin_and_private_umask(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path
) -> None:
    leaked = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(leaked, True)
    launch = python_launch(
        "import os, sys\n"
        "fds = sorted(os.listdir('/proc/self/fd'), key=int)\n"
        "more = [f'/proc/self/fd/{fd}' for fd in fds[3:]]  # the listing itself is closed again\n"
        "print(os.getsid(0) == os.getpid(), sys.stdin.read() == '', oct(os.umask(0)), fds[:3],"
        " [os.readlink(path) for path in more if os.path.exists(path)],"
        " os.getcwd())",
        working_dir=tmp_path,
    )
    await runtime.start(launch)
    await listener.ended(launch.worker)
    os.close(leaked)
    assert (await whole_log(runtime, launch.worker)).decode() == (
        f"True True 0o77 ['0', '1', '2'] [] {tmp_path}\n"
    )


async def test_job_folders_are_private_to_owner(
    runtime: LocalRuntime, listener: Listener, state: Path
) -> None:
    launch = python_launch("import os; open(os.environ['BENCHPOOL_OUTPUT_DIR'] + '/a', 'w')")
    await runtime.start(launch)
    await listener.ended(launch.worker)
    job = state / "jobs" / launch.worker.job
    assert [path for path in [job, *job.rglob("*")] if path.lstat().st_mode & 0o077] == []


async def test_missing_command_is_named(runtime: LocalRuntime, listener: Listener) -> None:
    launch = python_launch("", argv=("no-such-program", "x"))
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert (ended.exit_code, ended.by) == (127, EndedBy.COULD_NOT_START)
    assert ended.text == (
        "the command 'no-such-program' cannot be started: No such file or directory"
    )
    assert b"no-such-program" in await whole_log(runtime, launch.worker)


async def test_command_lookup_uses_worker_path_and_skips_non_executables(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path
) -> None:
    for name, mode in (("first", 0o600), ("second", 0o700)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool").write_text(f"#!/bin/sh\necho {name}\n")
        (tmp_path / name / "tool").chmod(mode)
    path = f"/nowhere:{tmp_path}/first:{tmp_path}/second"
    launch = python_launch("", argv=("tool",), env={"PATH": path})
    await runtime.start(launch)
    assert await listener.exit_of(launch.worker) == (0, EndedBy.ITSELF)
    assert await whole_log(runtime, launch.worker) == b"second\n"
    closed = python_launch("", argv=("tool",), env={"PATH": f"{tmp_path}/first"})
    await runtime.start(closed)
    ended = await listener.ended(closed.worker)
    assert (ended.exit_code, ended.text) == (
        126,
        "the command 'tool' cannot be started: Permission denied",
    )


async def test_missing_working_folder_is_named(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path
) -> None:
    launch = python_launch("", working_dir=tmp_path / "gone")
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert (ended.exit_code, ended.by) == (126, EndedBy.COULD_NOT_START)
    assert ended.text is not None
    assert str(tmp_path / "gone") in ended.text


async def test_repeated_start_runs_worker_once(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path
) -> None:
    mark = tmp_path / "starts"
    launch = python_launch(f"open({str(mark)!r}, 'a').write('x'); print('up', flush=True)")
    await asyncio.gather(*(runtime.start(launch) for _ in range(5)))
    await listener.ended(launch.worker)
    await runtime.start(launch)  # after its end too: reported again, not run again
    assert mark.read_text() == "x"


async def test_twenty_concurrent_workers_run_and_report_exit_codes(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launches = [python_launch(f"print({n}); raise SystemExit({n})") for n in range(20)]
    await asyncio.gather(*(runtime.start(launch) for launch in launches))
    codes = [(await listener.ended(launch.worker)).exit_code for launch in launches]
    assert codes == list(range(20))


async def test_gang_on_one_machine_gets_rendezvous_variables(
    runtime: LocalRuntime, listener: Listener
) -> None:
    job = worker_id().job
    launches = [
        python_launch(
            "import os; print(' '.join(os.environ[k] for k in ('MASTER_ADDR', 'WORLD_SIZE',"
            " 'RANK', 'LOCAL_RANK', 'NODE_RANK', 'NNODES', 'NPROC_PER_NODE')))",
            worker=WorkerId(job, 1, index),
            gpus=(f"GPU-{index}",),
            nodes=("localhost", "localhost"),
        )
        for index in range(2)
    ]
    for launch in launches:
        await runtime.start(launch)
    for index, launch in enumerate(launches):
        await listener.ended(launch.worker)
        printed = (await whole_log(runtime, launch.worker)).decode().strip()
        assert printed == f"127.0.0.1 2 {index} 0 {index} 2 1"


async def test_supervisor_is_small_and_has_no_secrets(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch("import os, time; print(os.getppid()); time.sleep(60)")
    await runtime.start(launch)
    supervisor = psutil.Process(int(await until_logged(runtime, launch.worker, b"\n")))
    assert supervisor.memory_info().rss < 16 * 1024 * 1024
    assert "PATH" not in supervisor.environ()
    assert launch.argv[-1] not in supervisor.cmdline()
