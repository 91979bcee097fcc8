"""Jobs of DAGs in a real Airflow with a triggerer, with a real pool."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchpool_scheduler.contract import Job
from benchpool_support.airflow_site import AirflowSite, airflow_site
from benchpool_support.serving import Served, served
from benchpool_support.waiting import until

pytestmark = pytest.mark.parametrize("programs", ["airflow"], indirect=True)

DAGS = Path(__file__).parent / "dags"


@dataclass(frozen=True)
class Stage:
    """Airflow site and the pool of its connection."""

    airflow: AirflowSite
    pool: Served
    results: Path

    def job(self, id_: str) -> Job:
        with self.pool.client("susan") as client:
            return client.job(id_).job

    def jobs(self, name: str) -> list[Job]:
        with self.pool.client("susan") as client:
            return [job for job in client.jobs() if job.name == name]


@pytest.fixture(scope="module")
def stage(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("airflow")
    results = folder / "results"
    results.mkdir()
    os.environ["BENCHPOOL_TEST_RESULTS"] = str(results)
    with served(folder / "state", gpus=12) as pool:
        connection = {"conn_type": "benchpool", "host": pool.url, "password": "susan"}
        with airflow_site(
            programs, folder / "home", DAGS, {"benchpool_default": connection}
        ) as site:
            yield Stage(site, pool, results)


def test_three_steps_run_in_order_and_pass_results(stage: Stage) -> None:
    run = stage.airflow.begin("three_steps")
    states = set(stage.airflow.ended("three_steps", run).values())
    assert states == {"success"}, stage.airflow.failures("three_steps", run)
    prepared = stage.airflow.xcom("three_steps", run, "prepare")
    trained = stage.airflow.xcom("three_steps", run, "train")
    looked = stage.airflow.xcom("three_steps", run, "look")
    assert prepared["results"] == str(stage.results / run)
    assert stage.airflow.xcom("three_steps", run, "train", "benchpool_job") == trained["job"]
    assert looked["job"] == trained["job"]
    assert (trained["state"], trained["exit_code"]) == ("succeeded", 0)
    job = stage.job(trained["job"])
    assert (job.gpus, job.project, job.name) == (2, "vision", "train-train")
    with stage.pool.client("susan") as client:
        assert f"prepared in {run}" in client.log(job.id).data.decode()


@pytest.mark.parametrize("task", ["deferred", "held"])
def test_failed_job_fails_task_with_reason_and_log(stage: Stage, task: str) -> None:
    run = stage.airflow.begin("fails")
    stage.airflow.until("fails", run, task, "failed")
    log = stage.airflow.log("fails", run, task)
    job = stage.job(stage.airflow.xcom("fails", run, task, "benchpool_job"))
    assert job.reason is not None
    assert job.reason.text in log.replace("\\u2026", "…")
    assert "epoch 1" in log
    assert "ValueError: the data is empty" in log


@pytest.mark.parametrize(
    ("task", "state", "words"),
    [("deferred", "deferred", "Waiting for the end of job"), ("held", "running", "project vision")],
)
def test_killed_task_cancels_job(stage: Stage, task: str, state: str, words: str) -> None:
    run = stage.airflow.begin("runs_long")
    stage.airflow.until("runs_long", run, task, state)
    until(lambda: words in stage.airflow.log("runs_long", run, task), f"{task} waits for its job")
    job = stage.airflow.xcom("runs_long", run, task, "benchpool_job")
    stage.airflow.mark("runs_long", run, task, "failed")
    until(lambda: stage.job(job).state == "cancelled", "the job is cancelled")
    with stage.pool.client("susan") as client:
        assert any("Its task in Airflow was stopped" in str(one) for one in (client.job(job),))


def test_task_timeout_cancels_job(stage: Stage) -> None:
    run = stage.airflow.begin("runs_long")
    stage.airflow.until("runs_long", run, "late", "failed")
    assert "did not end within 0:00:03" in stage.airflow.log("runs_long", run, "late")
    job = stage.airflow.xcom("runs_long", run, "late", "benchpool_job")
    until(lambda: stage.job(job).state == "cancelled", "the job is cancelled")


def test_repeated_submission_in_one_try_is_one_job(stage: Stage) -> None:
    run = stage.airflow.begin("sent_twice")
    assert stage.airflow.ended("sent_twice", run) == {"train": "success"}
    sent = [job for job in stage.jobs("train") if job.project == "vision"]
    assert [job.id for job in sent] == [stage.airflow.xcom("sent_twice", run, "train")["job"]]


def test_connection_test_names_pool_user(stage: Stage) -> None:
    body = {
        "connection_id": "elsewhere",
        "conn_type": "benchpool",
        "host": stage.pool.url,
        "password": "joe",
    }
    assert stage.airflow.ask("POST", "connections/test", body) == {
        "status": True,
        "message": "Connected to the pool as joe.",
    }
