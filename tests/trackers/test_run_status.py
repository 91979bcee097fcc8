"""Status of MLflow's runs after a cancellation, a killed process and a repair; chosen runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.contract import State
from benchpool_support import checkout
from benchpool_support.tracked_jobs import TURN, TrackedSite

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture
def store(tmp_path: Path) -> dict[str, str]:
    """Return the variable that names a new store of MLflow."""
    return {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db"}


def run_of(site: TrackedSite, store: dict[str, str]) -> dict[str, Any]:
    (run,) = site.shown("mlflow", **store)["mlflow"]
    return run


def repair(site: TrackedSite, store: dict[str, str]) -> None:
    """Run the lines of the documentation that correct the status of runs."""
    document = (checkout.ROOT / "docs" / "howto" / "tracking.md").read_text()
    (lines,) = re.findall(r"```python\n(.*?set_terminated.*?)```", document, re.DOTALL)
    subprocess.run(
        [site.python, "-c", lines],
        env={
            **site.variables,
            **store,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "BENCHPOOL_URL": site.pool.url,
            "BENCHPOOL_TOKEN": "susan",
        },
        check=True,
    )


def test_run_of_cancelled_job_is_killed(site: TrackedSite, store: dict[str, str]) -> None:
    job = site.send("--trackers", "mlflow", env=store)
    site.steps_done(job, 1, TURN)
    site.cancel(job)
    run = run_of(site, store)
    assert (run["status"], run["steps"]) == ("KILLED", list(range(TURN)))


def test_run_of_killed_process_is_closed_by_worker(
    site: TrackedSite, store: dict[str, str]
) -> None:
    job = site.send("--killed", "--trackers", "mlflow", env=store)
    site.comes_to(job, State.FAILED)
    closed = "was left open; its status is FAILED now" in site.log(job)
    # On an overloaded machine the import of MLflow can exceed the limit of this step.
    assert closed or "could not be closed within 10 s" in site.log(job)
    assert run_of(site, store)["status"] == ("FAILED" if closed else "RUNNING")
    repair(site, store)
    assert run_of(site, store)["status"] == "FAILED"


def test_documented_repair_closes_run_of_job_cancelled_while_paused(
    site: TrackedSite, store: dict[str, str]
) -> None:
    job = site.send("--trackers", "mlflow", env=store)
    site.steps_done(job, 1, TURN)
    site.pause(job)
    site.cancel(job)
    assert run_of(site, store)["status"] == "SCHEDULED"
    repair(site, store)
    assert run_of(site, store)["status"] == "KILLED"


def test_runs_that_user_named_continue(site: TrackedSite, store: dict[str, str]) -> None:
    chosen = {"WANDB_RUN_ID": "mine-1", "WANDB_RESUME": "allow", "TRACKIO_DIR": "mine", **store}
    trackers = ("mlflow", "trackio", "wandb", "tensorboard")
    job = site.send("--name", "mine", "--pauses", "1", "--trackers", *trackers, env=chosen)
    site.paused_often(job, 1)
    own = {"TRACKIO_DIR": str(site.folder / "mine"), **store}
    shown = site.shown(*trackers, SHOWN_TENSORBOARD=str(site.folder), **own)
    steps = list(range(2 * TURN))
    assert {
        name: [(run["name"], run["steps"]) for run in runs] for name, runs in shown.items()
    } == {
        "mlflow": [("mine", steps)],
        "trackio": [("mine", steps)],
        "wandb": [("mine", steps)],
        "tensorboard": [("mine", steps)],
    }
    assert [run["id"] for run in shown["wandb"]] == ["mine-1"]
