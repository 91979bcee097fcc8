"""Notebooks run as jobs in real kernels: log, executed copy, exit status, stopping, resuming."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from benchpool_support.other_pythons import other_python
from benchpool_support.runner_jobs import NotebookJob, read_until

pytestmark = pytest.mark.slow

TRAIN = """
import os, time
from benchpool import checkpoint
total, step = 0.0, 0
saved = checkpoint.latest()
if saved is not None:
    total, step = (float(x) for x in (saved / "state").read_text().split())
print("from step", int(step), "attempt", os.environ["BENCHPOOL_ATTEMPT"], flush=True)
while step < 400:
    total += (step % 7) * 0.1
    step += 1
    print("step", int(step), flush=True)
    time.sleep(0.01)
    if checkpoint.should_stop():
        with checkpoint.commit(int(step)) as folder:
            (folder / "state").write_text(f"{total!r} {step}")
        raise SystemExit(75)
"""
RESULT = """
import os
with open(os.path.join(os.environ["BENCHPOOL_OUTPUT_DIR"], "result"), "w") as file:
    file.write(repr(total))
"""


@pytest.fixture
def job(tmp_path: Path) -> NotebookJob:
    return NotebookJob(tmp_path)


def test_all_cells_run_in_folder_and_copy_is_executed(job: NotebookJob) -> None:
    status, log = job.run("import os\nx = 2", "print(os.getcwd())\nx + 1", "")
    assert status == 0
    assert str(job.root / "work") in log
    assert "\n3\n" in log
    assert "benchpool: cell 2 (2 of 2)" in log
    book = nbformat.read(job.copy, as_version=4)
    assert book.cells[1].outputs[1].data["text/plain"] == "3"
    assert [each.get("execution_count") for each in book.cells] == [1, 2, None]
    progress = json.loads((job.root / "progress.json").read_text())
    assert (progress["fraction"], progress["text"]) == (None, "all cells ran")


def test_refusal_is_logged_without_client_traceback(job: NotebookJob) -> None:
    status, log = job.run("import benchpool\nbenchpool.submit('x.py', gpus=-1)")
    assert status == 1
    lines = log.splitlines()
    assert lines[-1].startswith("benchpool: cell 1 failed: InvalidInput: ")
    assert lines[-2] == lines[-1].removeprefix("benchpool: cell 1 failed: ")
    assert "Traceback" not in log
    assert "site-packages" not in log


def test_error_ends_job_with_traceback_and_cell_number(job: NotebookJob) -> None:
    status, log = job.run("x = 1", "print('before')\nx / 0", "print('never')")
    assert status == 1
    assert "ZeroDivisionError" in log
    assert "\x1b[" not in log
    assert log.endswith("benchpool: cell 2 failed: ZeroDivisionError: division by zero (line 2)\n")
    assert "never" not in log
    book = nbformat.read(job.copy, as_version=4)
    assert [each.output_type for each in book.cells[1].outputs] == ["stream", "error"]
    assert book.cells[2].outputs == []


@pytest.mark.parametrize(
    ("cell", "status", "message"),
    [
        ("done = %run broken.py", 1, "cell 1 failed: ValueError: broken inside"),
        ("%%time\nraise ValueError('in time')", 1, "cell 1 failed: ValueError: in time"),
        ("%run ends.py", 3, "cell 1 ended the notebook with exit code 3"),
    ],
)
def test_error_shown_by_magic_ends_job(
    job: NotebookJob, cell: str, status: int, message: str
) -> None:
    folder = job.root / "work"
    folder.mkdir()
    (folder / "broken.py").write_text("raise ValueError('broken inside')")
    (folder / "ends.py").write_text("raise SystemExit(3)")
    ended, log = job.run(cell, "print('went on')")
    assert f"benchpool: {message}" in log
    assert ended == status
    assert "went on" not in log
    assert ("Traceback" in log) == (status == 1)


def test_errors_ignored_by_jupyterlab_do_not_end_job(job: NotebookJob) -> None:
    (job.root / "work").mkdir()
    (job.root / "work" / "ends.py").write_text("raise SystemExit(0)")
    shown = "try:\n    1 / 0\nexcept ZeroDivisionError:\n    get_ipython().showtraceback()"
    status, log = job.run("!false", "%run ends.py", shown, "print('went on')")
    assert (status, "went on\n" in log) == (0, True), log


def test_stopped_and_resumed_run_matches_uninterrupted_run(
    job: NotebookJob, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = NotebookJob(tmp_path_factory.mktemp("whole"))
    assert whole.run(TRAIN, RESULT)[0] == 0
    with job.running(TRAIN, RESULT) as first:
        read_until(first, "step 50")
        first.send_signal(signal.SIGTERM)  # to the runner only, which forwards it
        log, _ = first.communicate(timeout=60)
    assert first.returncode == 75
    assert "ended the notebook with exit code 75" in log
    words = job.texts(0).split()
    stopped_at = int(words[-1])
    assert stopped_at >= 50
    assert not (job.root / "output" / "result").exists()
    with job.running(TRAIN, RESULT, attempt=2) as second:
        log, _ = second.communicate(timeout=60)
    assert second.returncode == 0
    assert f"from step {stopped_at} attempt 2" in log
    result = (job.root / "output" / "result").read_text()
    assert result == (whole.root / "output" / "result").read_text()


def test_notice_file_alone_pauses_job(job: NotebookJob) -> None:
    with job.running(TRAIN, RESULT) as worker:
        read_until(worker, "step 5")
        job.notice()
        worker.communicate(timeout=60)
    assert worker.returncode == 75


def test_cell_ignoring_notice_is_ended_and_keeps_output(job: NotebookJob) -> None:
    with job.running("print('here', flush=True)\nimport time\ntime.sleep(600)") as worker:
        read_until(worker, "here")
        worker.send_signal(signal.SIGTERM)
        log, _ = worker.communicate(timeout=60)
    assert worker.returncode == 143
    assert "stopped on request" in log
    assert job.texts(0) == "here\n"


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("while not checkpoint.should_stop(): time.sleep(0.01)", 143),
        ("while not path.exists(): time.sleep(0.01)", 0),
    ],
)
def test_notice_in_last_cell_pauses_only_agreeing_code(
    job: NotebookJob, ending: str, status: int
) -> None:
    code = (
        "import os, pathlib, time\nfrom benchpool import checkpoint\n"
        "path = pathlib.Path(os.environ['BENCHPOOL_NOTICE_FILE'])\n"
        f"print('ready', flush=True)\n{ending}"
    )
    with job.running(code) as worker:
        read_until(worker, "ready")
        job.notice()
        worker.communicate(timeout=60)
    assert worker.returncode == status


def test_no_cell_starts_after_notice(job: NotebookJob) -> None:
    wait = (
        "import os, pathlib, time\nprint('ready', flush=True)\n"
        "while not pathlib.Path(os.environ['BENCHPOOL_NOTICE_FILE']).exists(): time.sleep(0.01)"
    )
    with job.running(wait, "print('never')") as worker:
        read_until(worker, "ready")
        job.notice()
        log, _ = worker.communicate(timeout=60)
    assert worker.returncode == 143
    assert "never" not in log


def test_executed_copy_shows_output_of_running_cell(job: NotebookJob) -> None:
    code = (
        "import json, os, pathlib, time\n"
        "copy = pathlib.Path(os.environ['BENCHPOOL_OUTPUT_DIR'], 'book.ipynb')\n"
        "print('shown', end=' ', flush=True)\n"
        "print('soon', flush=True)\n"
        "until = time.monotonic() + 30\n"
        "while not copy.exists() or 'shown soon' not in copy.read_text().split('outputs')[1]:\n"
        "    assert time.monotonic() < until\n"
        "    time.sleep(0.05)\n"
    )
    assert job.run(code)[0] == 0


def test_killed_kernel_is_reported_with_signal(job: NotebookJob) -> None:
    code = (
        "import os, signal\nprint('last words', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    status, log = job.run(code)
    assert status == 137
    assert "the kernel ended in cell 1 by signal 9: the usual cause is too little memory" in log


@pytest.mark.parametrize(("code", "status"), [(0, 1), (5, 5)])
def test_kernel_exit_is_reported_with_cell(job: NotebookJob, code: int, status: int) -> None:
    done, log = job.run("x = 1", f"import os\nos._exit({code})", "print('never')")
    assert done == status
    assert f"benchpool: the kernel ended in cell 2 with exit code {code}\n" in log
    assert "never" not in log


@pytest.mark.parametrize(("code", "status"), [("", 0), ("3", 3), ("'bad'", 1)])
def test_notebook_exit_status_becomes_job_exit_status(
    job: NotebookJob, code: str, status: int
) -> None:
    done, log = job.run(f"import sys\nsys.exit({code})", "print('never')")
    assert done == status
    assert "never" not in log


def test_progress_of_notebook_is_kept(job: NotebookJob) -> None:
    code = "from benchpool import checkpoint\ncheckpoint.progress(0.25, 'mine')"
    assert job.run(code, "x = 1", "y = 1")[0] == 0
    assert json.loads((job.root / "progress.json").read_text())["text"] == "mine"


def test_excess_output_is_logged_but_not_copied(job: NotebookJob) -> None:
    status, log = job.run("for i in range(30):\n    print('x' * 100_000, flush=True)\nprint('end')")
    assert status == 0
    assert len(log) > 3_000_000
    assert log.endswith("end\n")
    assert job.copy.stat().st_size < 1_300_000
    assert "this copy keeps 1 MiB of a cell" in job.texts(0)


def test_fast_cell_keeps_as_much_output_as_slow_cell(job: NotebookJob) -> None:
    status, _ = job.run("print('line\\n' * 1_000_000)", "print('next')")
    assert status == 0
    text = job.texts(0)
    kept = text.count("line\n")
    assert 200_000 < kept <= (1 << 20) // 5
    assert text.endswith(
        "line\n[benchpool: this copy keeps 1 MiB of a cell; further text is in the log]\n"
    )
    assert job.texts(1) == "next\n"


def test_user_file_shadowing_our_module_is_harmless(job: NotebookJob) -> None:
    (job.root / "work").mkdir()
    (job.root / "work" / "nbclient.py").write_text("raise RuntimeError('the wrong one')")
    status, log = job.run("print('fine')")
    assert status == 0
    assert "fine" in log


def test_stop_before_kernel_start_pauses_job(job: NotebookJob) -> None:
    with job.running("print('never')") as worker:
        job.notice()
        worker.send_signal(signal.SIGTERM)
        log, _ = worker.communicate(timeout=60)
    # Before Python has started, the signal ends the process. The pool treats both as 143.
    assert worker.returncode in (143, -signal.SIGTERM)
    assert "never" not in log


def test_each_gang_worker_writes_own_copy(
    job: NotebookJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_RANK", "1")
    assert job.run("print(1)")[0] == 0
    assert (job.root / "output" / "book.worker-1.ipynb").exists()
    assert not job.copy.exists()


def test_notebook_interpreter_runs_it_and_imports_checkpoint(job: NotebookJob) -> None:
    python = other_python(job.root / "env", with_kernel=True)
    status, log = job.run(
        "import sys\nprint(sys.executable)",
        "import benchpool\nfrom benchpool import checkpoint\nprint(checkpoint.directory())",
        "double = benchpool.remote(gpus=2)(lambda x: 2 * x)",
        "print('grid', [double(**each) for each in benchpool.grid(x=[1, 2])])",
        interpreter=python,
    )
    assert status == 0
    assert "grid [2, 4]" in log
    assert python in log
    assert str(job.root / "checkpoint") in log


def test_interpreter_without_ipykernel_is_rejected_with_remedy(job: NotebookJob) -> None:
    python = other_python(job.root / "env", with_kernel=False)
    status, log = job.run("1", interpreter=python)
    assert status == 2
    assert log == (
        f"benchpool: the notebook's Python {python} has no ipykernel: "
        f"run `{python} -m pip install ipykernel` and send again.\n"
    )


def test_missing_interpreter_is_named(job: NotebookJob) -> None:
    status, log = job.run("1", interpreter="/nowhere/python")
    assert status == 2
    assert "the notebook's Python /nowhere/python is not on this machine" in log


def test_executed_copy_names_job_attempt_and_time(
    tmp_path: Path,
) -> None:
    book = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("# How we train"),
            nbformat.v4.new_code_cell("print('hello')"),
        ],
        metadata={"benchpool": {"path": "lab/train.ipynb"}},
    )
    nbformat.write(book, tmp_path / "object")
    environment = {key: value for key, value in os.environ.items() if "BENCHPOOL" not in key}
    about = {"JOB_ID": "3fk2hq7a" + "b" * 18, "JOB_NAME": "tra`in", "ATTEMPT": "2"}
    subprocess.run(
        [
            *(sys.executable, "-m", "benchpool.runner", "notebook"),
            *("--notebook", str(tmp_path / "object"), "--name", "train-8254c329.ipynb"),
            *("--cwd", str(tmp_path), "--output", str(tmp_path)),
        ],
        env={**environment, **{f"BENCHPOOL_{name}": value for name, value in about.items()}},
        check=True,
        timeout=120,
        capture_output=True,
    )
    heading, prose, code = nbformat.read(tmp_path / "train-8254c329.ipynb", as_version=4).cells
    prefix = "**Executed copy** of `lab/train.ipynb`: job `train` (`3fk2hq7a`), attempt 2, started "
    assert (heading.cell_type, heading.source[: len(prefix)]) == ("markdown", prefix)
    assert heading.source.endswith(" UTC.")
    assert prose.source == "# How we train"
    assert "hello" in code.outputs[0].text
