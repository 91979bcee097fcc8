"""A job that is paused five times is one run in each tracker, with the job's real outcome."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchpool_scheduler.contract import Job, State
from benchpool_support.tracked_jobs import PAUSES, PUBLIC, TURN, TrackedSite, tracked_site

TRACKERS = ("mlflow", "wandb", "trackio", "tensorboard")
STEPS = (PAUSES + 1) * TURN
pytestmark = pytest.mark.timeout(1800)


class PausedJob(NamedTuple):
    """Job, the runs at its end by tracker, and MLflow's status in each pause."""

    job: Job
    runs: dict[str, list[dict[str, Any]]]
    statuses: list[str]


@pytest.fixture(scope="module")
def paused(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PausedJob]:
    """Return a job of two workers that was paused five times."""
    with tracked_site(tmp_path_factory.mktemp("paused"), programs / "python") as site:
        statuses: list[str] = []
        job = site.paused_often(
            site.send("--others", "wandb", "--trackers", *TRACKERS, workers=2),
            during=lambda _: statuses.extend(
                run["status"] for run in site.shown("mlflow")["mlflow"]
            ),
        )
        yield PausedJob(job, site.shown(*TRACKERS), statuses)


@pytest.mark.parametrize("tracker", TRACKERS)
def test_paused_job_is_one_run_with_all_steps(paused: PausedJob, tracker: str) -> None:
    assert (paused.job.state, paused.job.attempt) == (State.SUCCEEDED, PAUSES + 1)
    assert [run["steps"] for run in paused.runs[tracker]] == [list(range(STEPS))]


def test_run_has_name_or_id_of_job(paused: PausedJob) -> None:
    found = {tracker: (runs[0]["id"], runs[0]["name"]) for tracker, runs in paused.runs.items()}
    named = f"train-{paused.job.id[:8]}"
    assert found["wandb"] == (paused.job.id, "train")
    assert found["mlflow"][1] == "train"
    assert found["trackio"] == (named, named)
    assert found["tensorboard"][0] == "train/tensorboard"


def test_run_links_to_page_of_job(paused: PausedJob) -> None:
    page = f"{PUBLIC}/jobs/{paused.job.id}"
    assert paused.runs["wandb"][0]["note"] == page
    assert paused.runs["mlflow"][0]["note"].endswith(f"]({page})")


def test_mlflow_status_follows_job(paused: PausedJob) -> None:
    assert paused.statuses == ["SCHEDULED"] * PAUSES
    assert paused.runs["mlflow"][0]["status"] == "FINISHED"
    assert paused.runs["wandb"][0]["status"] == "exit code 0"


def test_repeated_steps_are_kept_in_one_run(site: TrackedSite) -> None:
    job = site.send("--back", "2", "--pauses", "1", "--trackers", *TRACKERS)
    site.paused_often(job, pauses=1)
    steps = [*range(TURN), *range(TURN - 2, 2 * TURN)]
    for tracker, runs in site.shown(*TRACKERS).items():
        assert [run["steps"] for run in runs] == [steps], tracker
