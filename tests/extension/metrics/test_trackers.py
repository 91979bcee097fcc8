"""Runs of a job in MLflow, Trackio and TensorBoard continue in its next attempt and are linked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchpool_scheduler.worker import job_package, records, tracker_runs
from benchpool_scheduler.worker.supervisor import last_step

MLFLOW = """
import atexit, json, os, types
FILE = os.environ["RUNS"]
_active = []
def _runs():
    return json.load(open(FILE)) if os.path.exists(FILE) else []
def _keep(runs):
    json.dump(runs, open(FILE, "w"))
def _get_experiment_id():
    return "7"
ns = types.SimpleNamespace
class MlflowClient:
    tracking_uri = os.environ.get("STORE", "sqlite:///mlflow.db")
    def search_runs(self, experiments, filters):
        assert experiments == ["7"], experiments
        wanted = "tags.`benchpool.job` = '{}'".format
        found = [it for it in _runs() if filters == wanted(it["tags"].get("benchpool.job"))]
        return [ns(info=ns(run_id=it["id"]), data=ns(tags=it["tags"])) for it in found]
def active_run():
    return ActiveRun(_active[-1]) if _active else None
def start_run(run_id=None, experiment_id=None, run_name=None, nested=False, parent_run_id=None,
              tags=None, description=None):
    runs = _runs()
    if run_id is None:
        run_id = str(len(runs))
        runs.append({"id": run_id, "name": run_name, "tags": tags or {}, "attempts": 0})
    run = runs[int(run_id)]
    run["attempts"] += 1
    run["status"] = "RUNNING"
    _keep(runs)
    _active.append(run_id)
    return ActiveRun(run_id)
class ActiveRun:
    def __init__(self, run_id): self.info = ns(run_id=run_id, experiment_id="7")
    def __enter__(self): return self
    def __exit__(self, kind, *_):
        end_run("FINISHED" if kind is None else "FAILED")
def end_run(status="FINISHED"):
    if _active:
        runs = _runs()
        runs[int(_active.pop())]["status"] = status
        _keep(runs)
atexit.register(lambda: end_run())
"""
TRACKIO = """
def init(project, name=None, resume="never"):
    print(project, name, resume)
"""
WANDB = """
import types
def init(project=None):
    return types.SimpleNamespace(id="w", url="https://wandb.ai/joe/p/runs/w?apiKey=s3cret")
"""
TORCH = """
class SummaryWriter:
    def __init__(self, log_dir=None, comment="", purge_step=None):
        print(log_dir, purge_step)
"""
START = "import sys; from mlflow.tracking import fluent as mlflow; "


class Job:
    """Attempts of a job with stand-in libraries."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.attempt = folder, 0
        self.package = folder / "python" / "0" / job_package.NAME
        job_package.write(self.package, job_package.content())

    def library(self, module: str, source: str) -> None:
        path = self.folder.joinpath(*module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)

    def run(self, code: str, notice: str = "", **variables: str) -> str:
        """Run an attempt, with a notice to stop if given, and return its output."""
        self.attempt += 1
        notice_file = self.folder / f"notice-{self.attempt}.json"
        if notice:
            notice_file.write_text(json.dumps({"kind": notice}))
        env = {
            **{"PYTHONPATH": f"{self.package}{os.pathsep}{self.folder}", "NODE_RANK": "0"},
            **{"BENCHPOOL_METRICS_FILE": str(self.folder / "m"), "RUNS": f"{self.folder}/runs"},
            **{"BENCHPOOL_RUNS_FILE": str(self.folder / records.RUNS)},
            **{"BENCHPOOL_JOB_ID": "j" * 26, "BENCHPOOL_JOB_NAME": "train"},
            **{"BENCHPOOL_NOTICE_FILE": str(notice_file), "BENCHPOOL_ATTEMPT": str(self.attempt)},
            **{"BENCHPOOL_JOB_URL": "https://pool/jobs/j", **variables},
        }
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
        assert "benchpool" not in done.stderr
        return done.stdout

    def runs(self) -> list[tuple[str, int, str]]:
        found = json.loads((self.folder / "runs").read_text())
        return [(it["name"], it["attempts"], it["status"]) for it in found]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    one = Job(tmp_path)
    one.library("mlflow.tracking.fluent", MLFLOW)
    return one


def test_mlflow_run_continues_across_pauses_with_true_status(job: Job) -> None:
    pause = f"{START}\nwith mlflow.start_run(): sys.exit(75)"
    for attempt in range(1, 6):
        job.run(pause, notice="pause")
        assert job.runs() == [("train", attempt, "SCHEDULED")]
    job.run(f"{START}\nwith mlflow.start_run(): pass")
    assert job.runs() == [("train", 6, "FINISHED")]
    tags = json.loads((job.folder / "runs").read_text())[0]["tags"]
    assert tags["mlflow.note.content"] == "[Job jjjjjjjj of benchpool](https://pool/jobs/j)"


@pytest.mark.parametrize(
    ("code", "notice", "status"),
    [
        ("mlflow.start_run(); sys.exit(75)", "pause", "SCHEDULED"),
        ("mlflow.start_run(); sys.exit(1)", "cancel", "KILLED"),
        ("mlflow.start_run(); 1 / 0", "", "FAILED"),
        ("mlflow.start_run()", "", "FINISHED"),
        ("mlflow.start_run(); mlflow.end_run()", "pause", "FINISHED"),
    ],
)
def test_mlflow_run_without_block_has_true_status(
    job: Job, code: str, notice: str, status: str
) -> None:
    job.run(START + code, notice=notice)
    assert job.runs() == [("train", 1, status)]


def test_named_mlflow_runs_continue_by_name(job: Job) -> None:
    loop = f"{START}\nfor s in 'ab':\n    with mlflow.start_run(run_name=s): pass"
    job.run(loop)
    job.run(loop.replace("'ab'", "'bc'"))
    assert job.runs() == [("a", 1, "FINISHED"), ("b", 2, "FINISHED"), ("c", 1, "FINISHED")]


def test_run_chosen_by_program_is_kept(job: Job) -> None:
    job.run(START + "mlflow.start_run(); mlflow.start_run(run_name='in', nested=True)")
    job.run(START + "mlflow.start_run(run_id='0')", BENCHPOOL_JOB_ID="other")
    job.run(START + "mlflow.start_run()", NODE_RANK="1")
    job.run(START + "mlflow.start_run()", RANK="1")
    job.run(START + "mlflow.start_run()", BENCHPOOL_HOOKS="none")
    assert [(name, attempts) for name, attempts, _ in job.runs()] == [
        *(("train", 2), ("in", 1)),
        *[(None, 1)] * 3,
    ]


def test_trackio_run_gets_job_name_and_resumes(job: Job) -> None:
    job.library("trackio", TRACKIO)
    named = "t.init('p', 'mine'); t.init('p', 'own', 'must')"
    code = f"import trackio as t; t.init('p'); t.init('p'); {named}"
    first = ["p train-jjjjjjjj never", "p None never", "p mine never", "p own must"]
    assert job.run(code).splitlines() == first
    again = ["p train-jjjjjjjj allow", "p None never", "p mine allow", "p own must"]
    assert job.run(code).splitlines() == again


def test_event_files_of_attempts_share_one_folder(job: Job) -> None:
    job.library("torch.utils.tensorboard.writer", TORCH)
    code = (
        "from torch.utils.tensorboard.writer import SummaryWriter as W; "
        "W(); W(comment='b', purge_step=3); W('own')"
    )
    assert job.run(code, TENSORBOARD_LOGGING_DIR="/r").split("\n")[:3] == [
        *("/r None", "/r/b 3", "own None"),
    ]
    assert job.run(code).startswith("None None")


def test_changed_tracker_runs_with_one_warning(job: Job) -> None:
    job.library("mlflow.tracking.fluent", "def start_run(): pass\ndef end_run(): pass")
    with pytest.raises(AssertionError, match="starts a new run in each attempt"):
        job.run(START)


def test_tracker_urls_are_reported_to_pool(job: Job) -> None:
    job.run(START + "mlflow.start_run()", STORE="https://ml.example/mlflow/")
    job.library("wandb", WANDB)
    job.run("import wandb; wandb.init()")
    job.library("trackio", TRACKIO)
    job.run("import trackio as t; t.init('p')", TRACKIO_SERVER_URL="http://t:1/?write_token=s3cret")
    assert tracker_runs.read_runs(job.folder) == (
        ("mlflow", "https://ml.example/mlflow/#/experiments/7/runs/0"),
        ("wandb", "https://wandb.ai/joe/p/runs/w"),
        ("trackio", "http://t:1/"),
    )


def test_killed_run_stays_open_and_ended_run_does_not(job: Job) -> None:
    folder = str(job.folder)
    job.run(START + "mlflow.start_run(); mlflow.end_run()")
    assert last_step.left_open(folder) is None
    killed = "mlflow.start_run(run_name='a'); mlflow.start_run(nested=True); os._exit(9)"
    job.run(f"import os; {START}{killed}")
    assert last_step.left_open(folder) == sys.executable
    job.run(f"import os; {START}mlflow.start_run(run_name='a'); mlflow.end_run(); os._exit(9)")
    assert [run["id"] for run in _recorded_runs(job) if run["open"]] == ["2"]


def test_store_password_is_never_written(job: Job) -> None:
    code = f"import os; {START}mlflow.start_run(); os._exit(9)"
    job.run(code, STORE="https://joe:s3cret@ml.example")
    assert [run["open"] for run in _recorded_runs(job)] == [False]
    assert "s3cret" not in (job.folder / records.RUNS).read_text()
    assert tracker_runs.read_runs(job.folder)[0].url.startswith("https://ml.example/#")
    same = "https://joe:s3cret@other.example"
    job.run(code, STORE=same, MLFLOW_TRACKING_URI=same, BENCHPOOL_JOB_ID="other")
    assert [(run["store"], run["open"]) for run in _recorded_runs(job)][1:] == [(None, True)]


def _recorded_runs(job: Job) -> list[dict[str, object]]:
    runs: list[dict[str, object]] = json.loads((job.folder / records.RUNS).read_text())["runs"]
    return runs
