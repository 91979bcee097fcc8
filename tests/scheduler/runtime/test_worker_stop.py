"""The pause contract: notice, SIGTERM, grace, SIGKILL to everything the worker started."""

from __future__ import annotations

import json
import os
import subprocess
import time
from datetime import UTC, datetime

import pytest

from benchpool_scheduler.runtime import EndedBy, WorkerId, WorkerStarted
from benchpool_scheduler.runtime.local import LocalRuntime
from benchpool_scheduler.worker import process_identity
from benchpool_support.workers import (
    Listener,
    cancel,
    pause,
    python_launch,
    until_logged,
    whole_log,
)

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up');"


def alive(pid: int) -> bool:
    return process_identity.start_ticks(pid) is not None


async def pids(runtime: LocalRuntime, worker: WorkerId, count: int) -> list[int]:
    """Return the pids that the worker prints as lines ``pid N``."""
    log = await until_logged(runtime, worker, b"all up")
    found = [int(line.split()[1]) for line in log.decode().splitlines() if line.startswith("pid")]
    assert len(found) == count
    return found


async def test_notice_is_complete_before_signal(runtime: LocalRuntime, listener: Listener) -> None:
    launch = python_launch(
        "import os, signal, sys, time\n"
        "def told(*_):\n"
        "    print(open(os.environ['BENCHPOOL_NOTICE_FILE']).read()); sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, told)\n"
        "print(os.path.exists(os.environ['BENCHPOOL_NOTICE_FILE']))\n"
        "time.sleep(60)"
    )
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"False")
    asked = time.time()
    await runtime.stop(launch.worker, pause(15))
    assert await listener.exit_of(launch.worker) == (3, EndedBy.NOTICE)
    notice = json.loads((await whole_log(runtime, launch.worker)).decode().splitlines()[1])
    deadline = datetime.fromisoformat(notice.pop("deadline"))
    assert notice == {
        "kind": "pause",
        "for": "joe/training",
        "text": "project joe asks for its quota",
    }
    assert deadline.tzinfo == UTC
    assert asked + 14 < deadline.timestamp() < time.time() + 16


async def test_program_polling_notice_file_can_save_before_signal(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(
        "import os, time\n"
        "print('up')\n"
        "while not os.path.exists(os.environ['BENCHPOOL_NOTICE_FILE']): time.sleep(0.05)\n"
        "print('saved'); raise SystemExit(9)"
    )
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    await runtime.stop(launch.worker, pause(10))
    assert await listener.exit_of(launch.worker) == (9, EndedBy.NOTICE)
    assert b"saved" in await whole_log(runtime, launch.worker)


async def test_exit_0_during_pause_is_reported_as_exit_0(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "print('up'); time.sleep(60)"
    )
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    await runtime.stop(launch.worker, pause(15))
    assert await listener.exit_of(launch.worker) == (0, EndedBy.NOTICE)


async def test_paused_shell_waiting_for_child_is_not_finished(
    runtime: LocalRuntime, listener: Listener
) -> None:
    # With many children, the shell has time to see the death of the last child before its own
    # signal, if that came last.
    script = "for n in $(seq 100); do sleep 60 & done; echo up; wait $!; exit 0"
    launch = python_launch("", argv=("sh", "-c", script))
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    await runtime.stop(launch.worker, pause(15))
    assert await listener.exit_of(launch.worker) == (143, EndedBy.NOTICE)


async def test_unresponsive_worker_is_killed_after_grace_period(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(DEAF + "time.sleep(60)")
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    asked = time.time()
    await runtime.stop(launch.worker, cancel(1.0))
    ended = await listener.ended(launch.worker)
    assert (ended.exit_code, ended.by) == (137, EndedBy.NOTICE)
    assert ended.text == "it did not end within its grace period and was killed"
    assert ended.at - asked >= 1.0


async def test_cancelled_worker_is_signalled_immediately(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch("import time; print('up'); time.sleep(60)")
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    await runtime.stop(launch.worker, cancel(600))  # longer than the test waits
    ended = await listener.ended(launch.worker)
    assert (ended.exit_code, ended.by) == (143, EndedBy.NOTICE)


async def test_cancel_shortens_pause_in_progress(runtime: LocalRuntime, listener: Listener) -> None:
    launch = python_launch("import time; print('up'); time.sleep(60)")
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    await runtime.stop(launch.worker, pause(600))
    await runtime.stop(launch.worker, pause(600))
    await runtime.stop(launch.worker, cancel(30))
    ended = await listener.ended(launch.worker)
    assert (ended.exit_code, ended.by) == (143, EndedBy.NOTICE)


async def test_stop_during_start_is_not_lost(runtime: LocalRuntime, listener: Listener) -> None:
    launches = [python_launch("import time; time.sleep(60)") for _ in range(5)]
    for launch in launches:
        await runtime.start(launch)
        await runtime.stop(launch.worker, cancel(5))
    for launch in launches:
        assert (await listener.ended(launch.worker)).by is EndedBy.NOTICE


DAEMON = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for step in range(2):          # double fork, new session: no parent, no group of ours
    if os.fork():
        if step == 0: break
        os._exit(0)
    os.setsid()
else:
    os.execve(sys.executable, [sys.executable, '-I', '-S', '-u', '-c',
        'import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);'
        'print("pid", os.getpid()); print("all up"); time.sleep(100)'], {})
time.sleep(float(sys.argv[1]))
"""


async def test_detached_daemon_with_empty_environment_is_killed(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(DAEMON.replace("float(sys.argv[1])", "100"))
    await runtime.start(launch)
    (daemon,) = await pids(runtime, launch.worker, 1)
    assert alive(daemon)
    await runtime.stop(launch.worker, cancel(0.5))
    assert (await listener.ended(launch.worker)).by is EndedBy.NOTICE
    assert not alive(daemon)


async def test_leftover_daemon_is_killed_when_worker_exits(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(DAEMON.replace("float(sys.argv[1])", "1"))
    await runtime.start(launch)
    (daemon,) = await pids(runtime, launch.worker, 1)
    assert await listener.exit_of(launch.worker) == (0, EndedBy.ITSELF)
    assert not alive(daemon)


async def test_daemon_is_killed_without_cgroup(
    runtime: LocalRuntime, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A name with a slash cannot be created, so the supervisor continues without a cgroup.
    from benchpool_scheduler.runtime.local import supervisors

    config = supervisors.supervisor_config
    monkeypatch.setattr(
        supervisors,
        "supervisor_config",
        lambda *arguments: {**config(*arguments), "name": "no/such/group"},
    )
    launch = python_launch(DAEMON.replace("float(sys.argv[1])", "100"))
    await runtime.start(launch)
    (daemon,) = await pids(runtime, launch.worker, 1)
    await runtime.stop(launch.worker, cancel(0.5))
    await listener.ended(launch.worker)
    assert not alive(daemon)


async def test_process_with_worker_tag_is_killed(runtime: LocalRuntime, listener: Listener) -> None:
    launch = python_launch(
        "import os, time; print(os.environ['BENCHPOOL_NOTICE_FILE']); time.sleep(1)"
    )
    await runtime.start(launch)
    notice = (await until_logged(runtime, launch.worker, b"\n")).decode().strip()
    outside = subprocess.Popen(["sleep", "100"], env={"BENCHPOOL_NOTICE_FILE": notice})
    other = subprocess.Popen(["sleep", "100"], env={"BENCHPOOL_NOTICE_FILE": notice + "x"})
    await listener.ended(launch.worker)
    assert outside.wait(120) == -9
    assert other.poll() is None
    other.kill()
    other.wait()


async def test_time_limit_ends_worker_with_notice_and_grace(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(
        "import os, signal, sys, time\n"
        "def told(*_):\n"
        "    print(open(os.environ['BENCHPOOL_NOTICE_FILE']).read()); sys.exit(4)\n"
        "signal.signal(signal.SIGTERM, told)\n"
        "time.sleep(60)",
        time_limit_s=1,
    )
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert (ended.exit_code, ended.by) == (4, EndedBy.TIME_LIMIT)
    assert ended.text == "it was ended at its time limit"
    assert b'"the time limit is reached"' in await whole_log(runtime, launch.worker)


async def test_machine_shutdown_pauses_worker_and_counts_as_lost(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(
        "import os, time; print('pid', os.getppid()); print('all up'); time.sleep(60)", grace_s=1
    )
    await runtime.start(launch)
    (supervisor,) = await pids(runtime, launch.worker, 1)
    os.kill(supervisor, 15)
    assert (await listener.ended(launch.worker)).by is EndedBy.LOST


async def test_killed_supervisor_loses_worker_and_leaves_no_process(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '100'], start_new_session=True)\n"
        "print('pid', os.getpid()); print('pid', child.pid); print('pid', os.getppid())\n"
        "print('all up'); time.sleep(100)"
    )
    await runtime.start(launch)
    worker, child, supervisor = await pids(runtime, launch.worker, 3)
    os.kill(supervisor, 9)
    ended = await listener.ended(launch.worker)
    assert (ended.exit_code, ended.by) == (None, EndedBy.LOST)
    assert not alive(worker)
    assert not alive(child)
    await runtime.start(launch)  # the same attempt never runs twice
    assert sum(isinstance(event, WorkerStarted) for event in listener.seen) == 1


async def test_kernel_out_of_memory_kill_is_reported(
    runtime: LocalRuntime, listener: Listener
) -> None:
    if not os.access("/sys/fs/cgroup/memory", os.W_OK):
        pytest.skip("a memory cgroup (v1) to run out of is needed")
    limited = f"/sys/fs/cgroup/memory/benchpool-test-{os.getpid()}"
    os.mkdir(limited)
    try:
        with open(f"{limited}/memory.limit_in_bytes", "w") as file:
            file.write(str(64 * 1024 * 1024))
        launch = python_launch(
            f"import os; open('{limited}/cgroup.procs', 'w').write('0')\ndata = b'x' * (512 << 20)"
        )
        await runtime.start(launch)
        ended = await listener.ended(launch.worker)
        subprocess.run(["rmdir", limited], check=False)
    finally:
        subprocess.run(["rmdir", limited], check=False, stderr=subprocess.DEVNULL)
    assert ended.exit_code == 137
    assert ended.by is EndedBy.OUT_OF_MEMORY
    assert ended.text is not None
    assert "ran out of memory" in ended.text
