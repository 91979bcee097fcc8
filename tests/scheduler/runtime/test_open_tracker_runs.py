"""The open MLflow run of a killed worker is closed by a step that runs as the worker.

The MLflow library is a fake that prints its calls. The hook's part is tested in
``tests/extension/metrics``.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.runtime import Launch, Notice
from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_scheduler.worker.supervisor import last_step
from benchpool_support.workers import (
    Listener,
    cancel,
    made_passable,
    pause,
    python_launch,
    until_logged,
    whole_log,
)

MLFLOW = """
import os, time, types
class MlflowClient:
    def __init__(self, tracking_uri=None):
        self.store = tracking_uri or os.environ["MLFLOW_TRACKING_URI"]
    def get_run(self, run):
        return types.SimpleNamespace(info=types.SimpleNamespace(status="RUNNING"))
    def set_terminated(self, run, status):
        who = (os.getuid(), os.environ["KEY"], os.environ["CUDA_VISIBLE_DEVICES"])
        print("benchpool: told", self.store, run, status, *who, flush=True)
"""
BEGIN = """
import json, os, sys, time, signal
run = {"tracker": "mlflow", "id": "r1", "store": None, "open": OPEN}
with open(os.environ["BENCHPOOL_RUNS_FILE"], "w") as file:
    json.dump({"python": PYTHON, "runs": [run]}, file)
print("up", flush=True)
"""
DEAF = "signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder with the library that other accounts can traverse."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o711)
    package = made / "mlflow" / "tracking"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(MLFLOW)
    for path in (made / "mlflow", package, package / "__init__.py"):
        path.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
async def pair(folder: Path) -> AsyncIterator[tuple[LocalRuntime, Listener]]:
    runtime = LocalRuntime(made_passable(folder / "state"), simulated(1))
    await runtime.open([])
    listener = Listener(runtime)
    yield runtime, listener
    await listener.close()
    await runtime.close()


def launch(
    folder: Path, then: str, *, left_open: bool = True, python: str = sys.executable
) -> Launch:
    program = BEGIN.replace("OPEN", str(left_open)).replace("PYTHON", repr(python)) + then
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder), "KEY": "s3cret"}
    return python_launch(program, env={**env, "MLFLOW_TRACKING_URI": "http://tracker"})


@pytest.mark.parametrize(
    ("then", "stop", "status"),
    [
        ("time.sleep(60)", pause(10), "SCHEDULED"),
        ("time.sleep(60)", cancel(10), "KILLED"),
        (DEAF, pause(0.1), "SCHEDULED"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", None, "FAILED"),
        ("os._exit(0)", None, "FINISHED"),
    ],
)
async def test_open_run_of_killed_worker_is_closed(
    pair: tuple[LocalRuntime, Listener], folder: Path, then: str, stop: Notice | None, status: str
) -> None:
    runtime, listener = pair
    started = launch(folder, then)
    await runtime.start(started)
    await until_logged(runtime, started.worker, b"deaf" if "deaf" in then else b"up")
    if stop is not None:
        await runtime.stop(started.worker, stop)
    await listener.ended(started.worker)
    line = f"benchpool: told http://tracker r1 {status} {os.getuid()} s3cret \n".encode()
    assert line in await whole_log(runtime, started.worker)


async def test_closed_run_is_left_unchanged(
    pair: tuple[LocalRuntime, Listener], folder: Path
) -> None:
    runtime, listener = pair
    started = launch(folder, "os._exit(1)", left_open=False)
    await runtime.start(started)
    await listener.ended(started.worker)
    assert b"told" not in await whole_log(runtime, started.worker)


async def test_failed_closing_step_is_logged_and_keeps_exit_code(
    pair: tuple[LocalRuntime, Listener], folder: Path
) -> None:
    runtime, listener = pair
    started = launch(folder, "os._exit(7)", python="/no/such/python")
    await runtime.start(started)
    assert (await listener.exit_of(started.worker))[0] == 7
    assert b"its runs in trackers could not be closed" in await whole_log(runtime, started.worker)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another account")
async def test_closing_step_runs_as_worker_account(
    pair: tuple[LocalRuntime, Listener], folder: Path
) -> None:
    runtime, listener = pair
    python = folder / "python"
    python.write_text("#!/bin/sh\necho benchpool: I am $(id -u)\n")
    python.chmod(0o755)
    record = json.dumps({"python": str(python), "runs": [{"open": True}]})
    argv = ("sh", "-c", f"echo '{record}' > $BENCHPOOL_RUNS_FILE; exit 1")
    started = python_launch("", argv=argv, account="nobody", working_dir=folder)
    await runtime.start(started)
    await listener.ended(started.worker)
    who = f"benchpool: I am {pwd.getpwnam('nobody').pw_uid}\n".encode()
    assert who in await whole_log(runtime, started.worker)


def test_only_own_messages_of_closing_step_are_logged() -> None:
    output = b"warning: x\nbenchpool: the run 1 of MLflow was left open; its status is KILLED now\n"
    assert last_step.own_lines(output) == [
        "the run 1 of MLflow was left open; its status is KILLED now"
    ]
