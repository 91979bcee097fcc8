"""Jobs in a real Dagster with a real pool."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from benchpool_scheduler.contract import Job
from benchpool_support.serving import Served, served
from benchpool_support.waiting import until

pytestmark = pytest.mark.parametrize("programs", ["dagster"], indirect=True)

FILE = Path(__file__).parent / "definitions_of_the_tests.py"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("dagster") / "state") as running:
        yield running


@pytest.fixture
def environ(pool: Served, tmp_path: Path) -> Mapping[str, str]:
    own = {"BENCHPOOL_URL": pool.url, "BENCHPOOL_TOKEN": "susan", "DAGSTER_HOME": str(tmp_path)}
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    return {**os.environ, **own, "COLUMNS": "400"}


def jobs(pool: Served, name: str) -> list[Job]:
    with pool.client("susan") as client:
        return [job for job in client.jobs() if job.name == name]


def run_dagster(programs: Path, environ: Mapping[str, str], *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [programs / "dagster", *words], env=environ, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_job_reports_to_dagster_through_log(
    programs: Path, pool: Served, environ: Mapping[str, str]
) -> None:
    status, text = run_dagster(
        programs, environ, "asset", "materialize", "-f", str(FILE), "--select", "trained"
    )
    assert status == 0, text
    (job,) = jobs(pool, "trained")
    assert (job.state, job.gpus) == ("succeeded", 2)
    assert "epoch 1" in text
    assert "the job reported a loss of 0.05" in text
    assert "__dagster_pipes" not in text


def test_failed_job_fails_step_with_reason_and_log(
    programs: Path, pool: Served, environ: Mapping[str, str]
) -> None:
    status, text = run_dagster(
        programs, environ, "job", "execute", "-f", str(FILE), "-j", "failing"
    )
    assert status != 0
    assert "ValueError: the data is empty" in text
    assert "failed with ValueError" in text


def test_repeated_submission_in_one_try_is_one_job(
    programs: Path, pool: Served, environ: Mapping[str, str]
) -> None:
    status, text = run_dagster(
        programs, environ, "job", "execute", "-f", str(FILE), "-j", "sent_twice"
    )
    assert status == 0, text
    assert len(jobs(pool, "twice")) == 2


def test_terminated_run_cancels_job(
    programs: Path, pool: Served, environ: Mapping[str, str]
) -> None:
    command = [str(programs / "dagster"), "job", "execute", "-f", str(FILE), "-j", "long"]
    running = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL)
    try:
        until(lambda: [job for job in jobs(pool, "runs_long") if job.state == "running"], "it runs")
        running.send_signal(signal.SIGTERM)
        until(lambda: [job for job in jobs(pool, "runs_long") if job.ended], "it was cancelled")
        assert running.wait(60) != 0
    finally:
        running.kill()
    (job,) = jobs(pool, "runs_long")
    assert job.state == "cancelled"
