"""Stacks of running workers are read from outside without harm to the processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchpool_scheduler.contract.stacks import ThreadStack
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.runtime.local import LocalRuntime
from benchpool_scheduler.worker.stacks import taking
from benchpool_support.workers import Listener, cancel, python_launch, until_logged

HANGS = """
import os, threading, time

def deep():
    threading.Event().wait()

threading.Thread(target=deep, name="loader", daemon=True).start()
there, tell = os.pipe()
if os.fork() == 0:
    os.write(tell, b"."); time.sleep(1000)
os.read(there, 1)
os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "1000")

def fit():
    print("up", flush=True); time.sleep(1000)

fit()
"""
SPY = """#!/bin/sh
echo "$@ ${{SECRET-none}}" >> {told}
echo 'Thread 7 (idle): "MainThread"'
echo '    wait (threading.py:320)'
echo '    <module> (train.py:12)'
"""
REFUSED = "#!/bin/sh\necho 'Permission Denied: Try running again as root' >&2\nexit 1\n"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder in which the service finds programs."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(taking, "BESIDE", str(folder))
    return folder


def tool(folder: Path, text: str) -> None:
    (folder / "py-spy").write_text(text)
    (folder / "py-spy").chmod(0o755)


async def test_stacks_of_python_processes_show_all_threads_repeatedly(
    runtime: LocalRuntime, listener: Listener, tools: Path, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(HANGS)
    launch = python_launch("", argv=("/usr/bin/env", "python3", "train.py"), working_dir=tmp_path)
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    for _ in range(2):
        found = await runtime.stacks(launch.worker)
        parent, child = sorted(found.processes, key=lambda it: -len(it.threads))
        frames = [thread.frames for thread in parent.threads]
        assert ["fit (train.py:15)", "<module> (train.py:17)"] in frames
        assert any("deep (train.py:5)" in each for each in frames)
        assert [thread.frames for thread in child.threads] == [["<module> (train.py:10)"]]
        assert (parent.by, found.why) == ("faulthandler", "")
    await runtime.stop(launch.worker, cancel(1.0))
    assert (await listener.exit_of(launch.worker))[1] is EndedBy.NOTICE


async def test_python_without_stack_handler_is_not_signalled(
    runtime: LocalRuntime, listener: Listener, tools: Path
) -> None:
    launch = python_launch("import time; print('up'); time.sleep(1000)")  # -I -S: no start-up code
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    found = await runtime.stacks(launch.worker)
    assert found.processes == []
    assert (
        found.why
        == "Its Python installed no stack dump handler at its start, and py-spy is not installed."
    )
    await runtime.stop(launch.worker, cancel(1.0))
    assert (await listener.exit_of(launch.worker))[1] is EndedBy.NOTICE


async def test_real_py_spy_reads_python_without_stack_handler(
    runtime: LocalRuntime, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = Path(sys.executable).with_name("py-spy")
    monkeypatch.setattr(taking, "BESIDE", str(spy.parent))
    code = "import threading, time\ndef fit():\n    print('up'); time.sleep(1000)\nfit()"
    launch = python_launch(code)
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    found = await runtime.stacks(launch.worker)
    if refusal := refused(spy):
        assert (found.processes, refusal in found.why) == ([], True)
        return
    (process,) = found.processes
    assert (process.by, found.why) == ("py-spy", "")
    (thread,) = process.threads
    assert thread == ThreadStack("MainThread", ["fit (<string>:3)", "<module> (<string>:4)"])
    assert process.command.endswith("fit()")


def refused(spy: Path) -> str:
    """Return why py-spy may not read a child of this process, or an empty text if it may."""
    read = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(read, stdin=subprocess.PIPE) as child:
        words = [str(spy), "dump", "--pid", str(child.pid)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


async def test_py_spy_is_used_if_installed(
    runtime: LocalRuntime, tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "of the service")
    recorded = tmp_path / "told"
    tool(tools, SPY.format(told=recorded))
    launch = python_launch("import time; print('up'); time.sleep(1000)")
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    (process,) = (await runtime.stacks(launch.worker)).processes
    assert process.by == "py-spy"
    assert process.threads[0].frames == ["wait (threading.py:320)", "<module> (train.py:12)"]
    assert recorded.read_text() == f"dump --pid {process.pid} none\n"


async def test_denied_py_spy_falls_back_to_faulthandler_with_reason(
    runtime: LocalRuntime, tools: Path
) -> None:
    tool(tools, REFUSED)
    argv = ("/usr/bin/env", "python3", "-c", "import time; print('up'); time.sleep(1000)")
    launch = python_launch("", argv=argv)
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    found = await runtime.stacks(launch.worker)
    assert [process.by for process in found.processes] == ["faulthandler"]
    assert found.why == (
        "py-spy may not read its processes here (Permission Denied: Try running again as root); "
        "the stacks are their own output."
    )
