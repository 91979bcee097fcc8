"""A paused job is one run of its tracker: each attempt has the same names."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.service.execution.tracking import with_names
from benchpool_scheduler.store.records import JobRecord

ID = "j" * 26
JOB = JobRecord(ID, "train", "vision", "susan", JobState.STARTING, 0.0, 0.0)
PAGE = f"https://hub.example/services/benchpool/jobs/{ID}"


def names(given: dict[str, str], worker: int = 0, base_url: str = "") -> dict[str, str]:
    found = with_names(given, JOB, worker, base_url=base_url, results=PurePath("/home/r"))
    return {name: text for name, text in found.items() if given.get(name) != text}


def test_first_worker_gets_run_id_and_job_url() -> None:
    assert names({}, base_url="https://hub.example/services/benchpool/") == {
        "WANDB_RUN_ID": ID,
        "WANDB_RESUME": "allow",
        "WANDB_NAME": "train",
        "WANDB_NOTES": PAGE,
        "WANDB_DIR": "/home/r",
        "TENSORBOARD_LOGGING_DIR": "/home/r/tensorboard",
        "BENCHPOOL_JOB_URL": PAGE,
    }


@pytest.mark.parametrize("base_url", ["", "/services/benchpool"])
def test_job_url_requires_absolute_base_url(base_url: str) -> None:
    found = names({}, base_url=base_url)
    assert "BENCHPOOL_JOB_URL" not in found
    assert found["WANDB_NOTES"] == "Job jjjjjjjj of benchpool"


@pytest.mark.parametrize("given", [{"WANDB_RUN_ID": "mine"}, {"WANDB_RESUME": "never"}])
def test_chosen_run_id_is_kept(given: dict[str, str]) -> None:
    assert {"WANDB_RUN_ID", "WANDB_RESUME"}.isdisjoint(names(given))


def test_preset_tracker_variables_are_kept() -> None:
    given = {"WANDB_NAME": "a", "WANDB_NOTES": "b", "WANDB_DIR": ".", "TENSORBOARD_LOGGING_DIR": ""}
    assert set(names(given)) == {"WANDB_RUN_ID", "WANDB_RESUME"}


def test_wandb_is_disabled_for_further_workers_by_default() -> None:
    assert names({}, worker=1) == {"WANDB_MODE": "disabled"}
    for chosen in ({"WANDB_MODE": "online"}, {"WANDB_RUN_ID": "shared"}, {"WANDB_DISABLED": ""}):
        assert names(chosen, worker=1) == {}
