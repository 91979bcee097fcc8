"""Jobs in a real Prefect with a real pool."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from benchpool_scheduler.contract import Job
from benchpool_support.loopback import answers, free_port
from benchpool_support.serving import Served, served
from benchpool_support.waiting import family, until

pytestmark = pytest.mark.parametrize("programs", ["prefect"], indirect=True)

FILE = Path(__file__).parent / "flows_of_the_tests.py"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("prefect") / "state") as running:
        yield running


@pytest.fixture(scope="module")
def environ(
    programs: Path, pool: Served, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, str]]:
    """Yield the environment of a flow, with a Prefect server and a pool."""
    home, port = tmp_path_factory.mktemp("home"), free_port()
    own = {
        "BENCHPOOL_URL": pool.url,
        "BENCHPOOL_TOKEN": "susan",
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "NO_PROXY": "127.0.0.1,localhost",
        "DO_NOT_TRACK": "1",
    }
    others = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT")}
    command = [
        str(programs / "prefect"),
        "server",
        "start",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env={**others, **own}, stdout=log, stderr=log)
    try:
        until(lambda: answers(f"http://127.0.0.1:{port}/api/health"), "Prefect's server answers")
        yield {**others, **own}
    finally:
        for one in reversed(family(server.pid)):
            one.kill()
        server.wait()


def jobs(pool: Served, name: str) -> list[Job]:
    with pool.client("susan") as client:
        return [job for job in client.jobs() if job.name == name]


def run(programs: Path, environ: Mapping[str, str], flow: str, results: Path) -> tuple[int, str]:
    command = [str(programs / "python"), str(FILE), flow, str(results)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_three_steps_run_in_order_and_pass_results(
    programs: Path, pool: Served, environ: Mapping[str, str], tmp_path: Path
) -> None:
    status, text = run(programs, environ, "three-steps", tmp_path / "results")
    assert status == 0, text
    assert "prepared" in text
    (trained,) = jobs(pool, "train")
    assert (trained.gpus, trained.project, trained.state) == (2, "vision", "succeeded")
    with pool.client("susan") as client:
        (look,) = jobs(pool, "look")
        assert trained.id in client.log(look.id).data.decode()


def test_failed_job_fails_task_with_reason_and_log(
    programs: Path, environ: Mapping[str, str], tmp_path: Path
) -> None:
    status, text = run(programs, environ, "fails", tmp_path)
    assert status != 0
    assert "JobNotSucceeded" in text
    assert "failed with ValueError" in text
    assert "ValueError: the data is empty" in text


def test_repeated_submission_in_one_try_is_one_job(
    programs: Path, pool: Served, environ: Mapping[str, str], tmp_path: Path
) -> None:
    status, text = run(programs, environ, "sent-twice", tmp_path)
    assert status == 0, text
    assert len(jobs(pool, "twice")) == 1


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_terminated_flow_cancels_job(
    programs: Path, pool: Served, environ: Mapping[str, str], tmp_path: Path, by: signal.Signals
) -> None:
    before = {job.id for job in jobs(pool, "runs_long")}
    command = [str(programs / "python"), str(FILE), "runs-long", str(tmp_path)]
    running = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL)
    try:
        (job,) = until(
            lambda: [
                job
                for job in jobs(pool, "runs_long")
                if job.state == "running" and job.id not in before
            ],
            "it runs",
        )
        running.send_signal(by)
        with pool.client("susan") as client:
            until(lambda: client.job(job.id).job.ended, "it was cancelled")
            assert client.job(job.id).job.state == "cancelled"
        assert running.wait(60) != 0
    finally:
        running.kill()
