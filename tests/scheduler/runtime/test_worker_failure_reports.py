"""The end of a failed worker names the exception with its location, or the signal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchpool_scheduler.contract.causes import EndCause
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.runtime.local import LocalRuntime
from benchpool_scheduler.worker.supervisor import failure, outcome
from benchpool_support.workers import Listener, python_launch

SCRIPT = """
import json

def fit(path):
    return json.loads(path)

fit("no json")
"""
CHAINED = """
try:
    {}["lost"]
except KeyError:
    raise ValueError("nothing is there")
"""


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (SCRIPT, "it failed with json.decoder.JSONDecodeError: Expecting value: line 1 column 1 "
                 "(char 0) (train.py, line 5)"),
        (CHAINED, "it failed with ValueError: nothing is there (train.py, line 5)"),
        ("import nothing_like_it",
         "it failed with ModuleNotFoundError: No module named 'nothing_like_it' "
         "(train.py, line 1)"),
        ("import os; os.kill(os.getpid(), 11)",
         "it was ended by SIGSEGV: it accessed invalid memory"),
        ("import os; os.kill(os.getpid(), 15)",
         "it was ended by SIGTERM: it was asked to terminate"),
        ("print(\"benchpool: the notebook's Python p has no ipykernel: install it\"); exit(1)",
         "it failed before its first cell: the notebook's Python p has no ipykernel: install it"),
        ("print('bye'); raise SystemExit(3)", None),
        ("print('benchpool: cell 2 (2 of 3)\\nloss 1', flush=True); import os; os.abort()",
         "it was ended in cell 2 by SIGABRT: it aborted, as the C library and CUDA do after an "
         "error"),
        ("print('benchpool: the kernel ended in cell 4 with exit code 0'); exit(1)",
         "it failed in cell 4: its Python ended with exit code 0"),
        ("print('benchpool: Refused: 9 GPUs are asked for. (train.py, line 3)'); exit(1)",
         "it failed with Refused: 9 GPUs are asked for. (train.py, line 3)"),
        ("print('x' * 100_000); raise OSError('late')",
         "it failed with OSError: late (train.py, line 1)"),
    ],
)  # fmt: skip
async def test_failure_names_exception_location_or_signal(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path, program: str, message: str | None
) -> None:
    (tmp_path / "train.py").write_text(program)
    launch = python_launch("", argv=("/usr/bin/env", "python3", "train.py"), working_dir=tmp_path)
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert (ended.by, ended.text) == (EndedBy.ITSELF, message)


@pytest.mark.parametrize(
    ("program", "cause"),
    [
        ("raise RuntimeError('CUDA error: uncorrectable ECC error encountered')",
         EndCause.GPU_ERROR),
        ("class OutOfMemoryError(RuntimeError): pass\n"
         "raise OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB')",
         EndCause.OUT_OF_GPU_MEMORY),
        # The first error was handled; the last one ended the worker.
        ("print('CUDA out of memory')\nfor n in range(50): print(n)\nraise ValueError", None),
    ],
)  # fmt: skip
async def test_gpu_error_is_detected_in_last_log_lines(
    runtime: LocalRuntime, listener: Listener, program: str, cause: EndCause | None
) -> None:
    launch = python_launch(program)
    await runtime.start(launch)
    assert (await listener.ended(launch.worker)).cause is cause


async def test_traceback_hash_is_independent_of_folder(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path
) -> None:
    marks = []
    for number, name in enumerate(["one", "two", "three"]):
        (tmp_path / name).mkdir()
        line = "\n" * (name == "three")
        (tmp_path / name / "a.py").write_text(f"{line}raise OSError(__file__, {number}, id(1))")
        launch = python_launch("", argv=("/usr/bin/env", "python3", str(tmp_path / name / "a.py")))
        await runtime.start(launch)
        marks.append((await listener.ended(launch.worker)).traceback)
    assert marks[0] is not None
    assert marks[0] == marks[1] != marks[2]


async def test_successful_worker_with_printed_traceback_has_no_failure(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch("import traceback\ntry: 1/0\nexcept: print(traceback.format_exc())")
    await runtime.start(launch)
    assert (await listener.ended(launch.worker)).text is None


async def test_time_limit_message_names_cell(runtime: LocalRuntime, listener: Listener) -> None:
    program = "import time; print('benchpool: cell 7 (3 of 4)', flush=True); time.sleep(600)"
    launch = replace(python_launch(program), time_limit_s=2.0)
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert ended.text == "it was ended in cell 7 at its time limit"


def test_out_of_memory_message_names_cell() -> None:
    tail = b"benchpool: cell 3 (1 of 4)\n"
    bound = outcome.Seen(around=True, inside=True, memory=8 << 30)
    for seen, message in (
        (bound, "it ran out of memory in cell 3: it needed more than the 8 GiB that it requested"),
        (outcome.Seen(around=True), "it was ended in cell 3 because the machine ran out of memory"),
    ):
        by, text = outcome.words(137, seen, tail)
        assert (by, text) == ("out-of-memory", message)
        assert failure.place(text or "") == {"cell": 3}
