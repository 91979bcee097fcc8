"""``benchpool submit``: files sent with a job, returned results, exit status."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from nbformat import v4, writes

from benchpool_support.serving import Served

pytestmark = pytest.mark.slow

Benchpool = Callable[..., Any]

TRAIN = """\
import os, pathlib, sys
import part.helper
print("args", sys.argv[1:])
pathlib.Path(os.environ["BENCHPOOL_OUTPUT_DIR"], "model.txt").write_text("trained")
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""


@pytest.fixture
def train(folder: Path) -> Path:
    (folder / "train.py").write_text(TRAIN)
    (folder / "part").mkdir()
    (folder / "part" / "helper.py").write_text("print('helper here')")
    return folder / "train.py"


def test_script_runs_with_folder_files_and_arguments(benchpool: Benchpool, train: Path) -> None:
    result = benchpool("submit", "--wait", "--gpus", "2", "train.py", "0", "--gpus", "7", "-m", "x")
    assert result.status == 0
    assert result.out == "helper here\nargs ['0', '--gpus', '7', '-m', 'x']\n"


def test_job_after_another_shows_dependency(benchpool: Benchpool, train: Path) -> None:
    first = benchpool("submit", "--json", "--gpus", "1", "--", "sleep", "600").json
    second = benchpool("submit", "--json", "--gpus", "1", "--", "sleep", "600").json
    ids = f"{first['id'][:8]},{second['id']}"
    result = benchpool("submit", "--after", ids, "--name", "plot", "train.py")
    assert "Waits for 2 of 2 jobs: job " in result.out
    (plot,) = [job for job in benchpool("jobs", "--json").json if job["name"] == "plot"]
    assert [it["job"] for it in plot["awaits"]] == [first["id"], second["id"]]
    assert "After" in benchpool("show", plot["id"]).out
    assert benchpool("submit", "--after", "none", "train.py").status == 2
    benchpool("cancel", first["id"])
    assert benchpool("submit", "--after", first["id"], "train.py").status == 3


def test_notebook_runs_all_cells_with_folder_files(
    benchpool: Benchpool, train: Path, folder: Path, environ: dict[str, str]
) -> None:
    environ["VIRTUAL_ENV"] = sys.prefix  # its Python has a kernel
    cells: list[dict[str, object]] = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Train"]},
        {"cell_type": "code", "metadata": {}, "source": ["import part.helper\n", "n = 41"],
         "outputs": [], "execution_count": 3},
        {"cell_type": "code", "metadata": {}, "source": "print('answer', n + 1)", "outputs": []},
    ]  # fmt: skip
    notebook: dict[str, object] = {
        "nbformat": 4,
        "nbformat_minor": 4,
        "metadata": {},
        "cells": cells,
    }
    (folder / "crash.ipynb").write_text(json.dumps(notebook))
    result = benchpool("submit", "--wait", "--gpus", "1", "crash.ipynb")
    assert (result.status, "helper here" in result.out, "answer 42" in result.out) == (
        0,
        True,
        True,
    )
    (executed,) = (folder / "benchpool-results").glob("crash-*/*.ipynb")
    ran = json.loads(executed.read_text())["cells"]
    assert "markdown" in [cell["cell_type"] for cell in ran]
    assert "answer 42" in str(ran[-1])
    failed = dict(notebook, cells=[{**cells[2], "source": "1 / 0"}])
    (folder / "crash.ipynb").write_text(json.dumps(failed))
    assert benchpool("submit", "--wait", "crash.ipynb").status == 1


def test_wait_exits_with_status_of_job(benchpool: Benchpool, train: Path) -> None:
    result = benchpool("submit", "--wait", "train.py", "41")
    assert result.status == 41
    assert result.err.splitlines()[-1] == "train ended with exit code 41.", "and says why"


def test_wait_follows_job_through_pause(
    service: Served, folder: Path, environ: Mapping[str, str]
) -> None:
    program = (
        "import os, time; n = os.environ['BENCHPOOL_ATTEMPT']; print('attempt', n, flush=True);"
        "time.sleep(600 if n == '1' else 0)"
    )
    process = start(folder, environ, "submit", "--wait", "--", sys.executable, "-c", program)
    assert process.stdout is not None
    assert process.stdout.readline() == "attempt 1\n"
    with service.client("susan") as susan:
        (job,) = susan.jobs()
        susan.pause(job.id)
        assert process.stderr is not None
        assert any("paused" in line for line in process.stderr)  # printed before the job is resumed
        susan.resume(job.id)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "attempt 2\n")


def start(folder: Path, environ: Mapping[str, str], *words: str) -> subprocess.Popen[str]:
    """Start a command line as a separate process that handles Ctrl-C as in a terminal."""
    # A shell's background job ignores SIGINT, and its child processes inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "benchpool_scheduler.cli", *words],
            cwd=folder,
            env=dict(environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def test_results_are_written_beside_script(benchpool: Benchpool, train: Path, folder: Path) -> None:
    benchpool("submit", "--wait", "--name", "my first", "train.py")
    (found,) = (folder / "benchpool-results").glob("my-first-*/model.txt")
    assert found.read_text() == "trained"


def test_module_and_command_run(benchpool: Benchpool, folder: Path) -> None:
    (folder / "tool.py").write_text("import sys; print(sys.argv[1:])")
    module = benchpool("submit", "--wait", "-m", "tool", "--json", "3")
    command = benchpool("submit", "--wait", "--", "sh", "-c", "echo from $0", "shell")
    assert (module.status, module.out) == (0, "['--json', '3']\n")
    assert (command.status, command.out) == (0, "from shell\n")


def test_only_named_variables_reach_job(
    benchpool: Benchpool, environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_TERMINAL", "x")
    result = benchpool("submit", "--wait", "--env", "A=1=2", "--env", "PATH", "--", "env")
    lines = result.out.splitlines()
    assert "A=1=2" in lines
    assert f"PATH={environ['PATH']}" in lines
    assert not any("SECRET_OF_THE_TERMINAL" in line or "TOKEN" in line for line in lines)


def test_repeated_key_submits_once(benchpool: Benchpool, train: Path) -> None:
    first, second = (
        benchpool("submit", "--json", "--key", "k", "train.py").json["id"] for _ in range(2)
    )
    assert first == second
    assert len(benchpool("jobs", "--json").json) == 1
    ended = benchpool("submit", "--wait", "--json", "--key", "k", "train.py").json["state"]
    output = benchpool("submit", "--key", "k", "train.py").out
    assert f"The job with this key: {ended}." in output
    assert "Starts" not in output


def test_key_with_another_script_is_rejected_before_upload(
    benchpool: Benchpool, folder: Path, train: Path
) -> None:
    first = benchpool("submit", "--json", "--key", "k", "train.py").json["id"]
    train.write_text("print('another one')\n")
    result = benchpool("submit", "--key", "k", "train.py")
    assert result.status == 3
    assert f"belongs to job {first[:8]} (train)" in result.err
    assert "other content: files train.py. Nothing was sent." in result.err
    assert len(benchpool("jobs", "--json", "--all").json) == 1


@pytest.mark.parametrize(("written", "seconds"), [("90m", 5400), ("1h30m", 5400), ("60", 60)])
def test_time_limit_accepts_human_units(
    benchpool: Benchpool, service: Served, train: Path, written: str, seconds: int
) -> None:
    id_ = benchpool("submit", "--json", "--time-limit", written, "train.py").json["id"]
    job = service.pool.ledger.job(id_)
    assert job is not None
    assert job.spec.time_limit_s == seconds


@pytest.mark.parametrize("written", ["soon", "0", "90x", "9000d"])
def test_invalid_time_limit_is_rejected_with_example(
    benchpool: Benchpool, train: Path, written: str
) -> None:
    result = benchpool("submit", "--time-limit", written, "train.py")
    assert result.status == 2
    assert f"--time-limit is '{written}'. Give a time such as 90m" in result.err


def test_json_output_has_declared_keys(benchpool: Benchpool, train: Path) -> None:
    result = benchpool("submit", "--json", "train.py")
    assert list(result.json) == [
        "id", "name", "project", "user", "state", "reason", "gpus", "workers", "min_workers",
        "priority", "preemptible", "over_quota", "attempt", "submitted", "started", "ended",
        "exit_code", "progress", "estimated_start", "preemptions", "url", "actions", "tags",
        "time_limit_s", "gpu_models", "pause", "metrics", "metrics_updated", "note", "parameters",
        "trial", "awaits", "in_line_since", "tracker_runs", "deadline", "deadline_standing",
    ]  # fmt: skip


def test_possible_secrets_are_excluded_and_reported(benchpool: Benchpool, folder: Path) -> None:
    (folder / ".env").write_text("TOKEN=1")
    result = benchpool("submit", "--wait", "--", "ls", "-a")
    assert ".env" not in result.out.split()
    assert "left out: .env (looks like a secret" in result.err


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "There is nothing to run"),
        (["--gpus", "0", "train.py"], 2, "0 is not in the range"),
        (["--gpus", "1.5", "train.py"], 2, "is not a valid integer"),
        (["--gpu", "2", "train.py"], 2, "No such option"),
        (["missing.py"], 2, "There is no file missing.py"),
        (["../outside.py"], 2, "is not below"),
        (["note.ipynb"], 2, "note.ipynb cannot be read as a notebook"),
        (["missing.ipynb"], 2, "There is no file missing.ipynb"),
        (["note.ipynb", "--gpus", "2"], 2, "Put options of benchpool before the notebook"),
        (["run.sh"], 2, "`benchpool submit -- ./run.sh`"),
        (["--gpus", "64", "train.py"], 2, "largest machine has 4"),
        (["--project", "speech", "train.py"], 3, "not a member of project speech"),
        (["--env", "NOT_SET_HERE", "train.py"], 2, "--env NOT_SET_HERE=VALUE"),
    ],
)
def test_unsendable_input_is_rejected_in_one_sentence(
    benchpool: Benchpool, train: Path, folder: Path, words: list[str], status: int, message: str
) -> None:
    for name in ("note.ipynb", "run.sh", "../outside.py"):
        (folder / name).write_text("")
    result = benchpool("submit", *words)
    assert (result.status, result.out) == (status, "")
    assert message in result.err
    as_json = benchpool("submit", "--json", *words)
    assert set(as_json.json["error"]) == {"code", "message", "field", "numbers"}
    assert as_json.status == status


def test_interrupted_wait_leaves_job_running(
    service: Served, folder: Path, environ: Mapping[str, str]
) -> None:
    program = "print('up', flush=True); input_ = __import__('time').sleep(600)"
    process = start(folder, environ, "submit", "--wait", "--", sys.executable, "-c", program)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "continues. `benchpool logs -f" in err
    with service.client("susan") as susan:
        (job,) = susan.jobs()
        assert job.state == "running"
        susan.cancel(job.id)


def test_missing_import_is_rejected_before_upload(
    benchpool: Benchpool, folder: Path, service: Served
) -> None:
    (folder / "broken.py").write_text("import os\nimport msgspecc\n")
    with service.client("susan") as susan:
        before = [job.id for job in susan.jobs()]
        result = benchpool("submit", "broken.py")
        assert [job.id for job in susan.jobs()] == before
    assert result.status == 2
    assert "broken.py, line 2: there is no module `msgspecc` in /" in result.err
    # A PYTHONPATH passed to the job counts; a path computed by the code only causes a warning.
    (folder / "lib").mkdir()
    (folder / "lib" / "msgspecc.py").write_text("")
    lib = f"PYTHONPATH={folder / 'lib'}"
    assert benchpool("submit", "--wait", "--env", lib, "broken.py").status == 0
    path = "os.environ.get('LIB', 'lib')"
    code = f"import os, sys\nsys.path.append({path})\nimport msgspecc\n"
    (folder / "broken.py").write_text(code)
    result = benchpool("submit", "--wait", "broken.py")
    assert result.status == 0
    assert "broken.py, line 3: there is no module `msgspecc`" in result.err


def test_imports_of_modules_and_notebooks_are_checked(benchpool: Benchpool, folder: Path) -> None:
    (folder / "part").mkdir()
    (folder / "part" / "train.py").write_text("x = 1\nimport msgspecc\n")
    result = benchpool("submit", "-m", "part.train")
    assert (result.status, result.err[:45]) == (2, "benchpool: part/train.py, line 2: there is no")
    result = benchpool("submit", "-m", "msgspecc.train")
    assert result.err.startswith("benchpool: -m msgspecc.train: there is no module `msgspecc` in /")
    cells = [v4.new_markdown_cell("# Rates"), v4.new_code_cell("\nimport msgspecc")]
    (folder / "book.ipynb").write_text(writes(v4.new_notebook(cells=cells)))
    result = benchpool("submit", "book.ipynb")
    refused = result.err.splitlines()[-1]
    assert (result.status, refused[:40]) == (2, "benchpool: cell 2, line 2: there is no m")


def test_imports_in_another_image_are_reported_unchecked(
    benchpool: Benchpool, folder: Path
) -> None:
    (folder / "broken.py").write_text("import msgspecc\n")
    result = benchpool("submit", "--image", "lab/other:2", "broken.py")
    warning = "imports are not checked: the packages of lab/other:2 are not known here."
    assert warning in result.err
    assert "msgspecc" not in result.err
