"""Real TensorBoard and MLflow as services and in notebook servers, and links to MLflow runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application

from benchpool_scheduler import cli
from benchpool_scheduler.app.pool_services import gate_of
from benchpool_scheduler.contract import Job
from benchpool_scheduler.contract.serving import ServiceState
from benchpool_support import checkout, direct
from benchpool_support.serving import PREFIX
from benchpool_support.tracked_jobs import PATIENCE_S, PUBLIC, TURN, TrackedSite
from benchpool_support.waiting import until

pytestmark = pytest.mark.timeout(1800)
LOSSES = [[step, pytest.approx(1 / (step + 1))] for step in range(2 * TURN)]
Serve = Callable[[str, str, str], httpx.Client]


@pytest.fixture(scope="module")
def gate(site: TrackedSite) -> Iterator[str]:
    """Serve the gate of the pool; return the address below which its services are."""

    async def serve() -> tuple[HTTPServer, int]:
        routes = gate_of(site.pool.pool, site.pool.identity, PREFIX).routes()
        server, sockets = HTTPServer(Application(routes)), bind_sockets(0, "127.0.0.1")
        server.add_sockets(sockets)
        return server, sockets[0].getsockname()[1]

    server, port = site.pool.do(serve())
    yield f"http://127.0.0.1:{port}{PREFIX}s/"

    async def end() -> None:
        server.stop()
        await server.close_all_connections()

    site.pool.do(end())


@pytest.fixture
def serve(
    site: TrackedSite, programs: Path, gate: str, capfd: pytest.CaptureFixture[str]
) -> Iterator[Serve]:
    """Return a function that serves a template as susan, and returns a client for its address."""
    environ = {
        **site.variables,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "BENCHPOOL_URL": site.pool.url,
        "BENCHPOOL_TOKEN": "susan",
    }
    begun: list[str] = []

    def run(name: str, template: str, what: str) -> httpx.Client:
        words = ("serve", name, "--min", "1", "--template", template, what)
        assert cli.run(words, environ, site.folder) == 0, capfd.readouterr()
        begun.append(name)
        with site.pool.client("susan") as susan:
            until(
                lambda: susan.service(name),
                f"service {name} is ready",
                PATIENCE_S,
                holds=lambda one: one.state is ServiceState.READY,
            )
        return direct.Client(
            base_url=f"{gate}{name}/", headers={"Authorization": "token susan"}, timeout=PATIENCE_S
        )

    yield run
    with site.pool.client("susan") as susan:
        for name in begun:
            susan.remove_service(name)


@pytest.fixture(scope="module")
def logged(site: TrackedSite) -> Job:
    """Return a job that was paused once and has event files in its results."""
    job = site.send("--pauses", "1", "--trackers", "tensorboard")
    return site.paused_often(job, 1)


def losses(client: httpx.Client, run: str) -> list[list[Any]]:
    query = {"run": run, "tag": "loss"}
    return [each[1:] for each in client.get("data/plugin/scalars/scalars", params=query).json()]


def test_tensorboard_template_shows_results_of_job(serve: Serve, logged: Job) -> None:
    with serve("board", "tensorboard", logged.id) as board:
        assert "<title>TensorBoard</title>" in board.get("").text
        (run,) = until(lambda: board.get("data/runs").json(), "the event files were read")
        assert losses(board, run) == LOSSES


def test_tensorboard_in_notebook_server_shows_all_jobs(
    site: TrackedSite, logged: Job, tmp_path: Path
) -> None:
    socket = tmp_path / "socket"
    packages = (checkout.ROOT / "extension", checkout.ROOT / "scheduler")
    env = {**site.variables, "PYTHONPATH": os.pathsep.join(map(str, packages))}
    words = [str(site.python), "-m", "benchpool.tracker_views.serve_tensorboard", str(socket)]
    with subprocess.Popen(words, cwd=site.folder, env=env) as process:
        try:
            until(socket.exists, "TensorBoard listens", PATIENCE_S)
            transport = httpx.HTTPTransport(uds=str(socket))
            with httpx.Client(
                transport=transport, base_url="http://tensorboard", timeout=PATIENCE_S
            ) as board:
                assert "<title>TensorBoard</title>" in board.get("").text
                runs = until(lambda: board.get("data/runs").json(), "the event files were read")
                assert runs == ["train"]
                assert losses(board, "train") == LOSSES
        finally:
            process.terminate()


def test_jobs_and_runs_of_mlflow_template_link_to_each_other(
    site: TrackedSite, serve: Serve, gate: str
) -> None:
    (site.folder / "team.db").touch()
    with serve("runs", "mlflow", "team.db") as server:
        assert "<title>MLflow</title>" in server.get("").text
        store = {"MLFLOW_TRACKING_URI": f"{gate}runs", "MLFLOW_TRACKING_TOKEN": "susan"}
        job = site.send("--pauses", "1", "--trackers", "mlflow", env=store)
        ended = site.paused_often(job, 1)
        (link,) = ended.tracker_runs
        run = link.url.rpartition("/")[2]
        assert link.url.startswith(f"{gate}runs/#/experiments/0/runs/")
        found = server.get("api/2.0/mlflow/runs/get", params={"run_id": run}).json()["run"]
        tags = {tag["key"]: tag["value"] for tag in found["data"]["tags"]}
        assert tags["benchpool.job"] == job.id
        assert tags["mlflow.note.content"].endswith(f"]({PUBLIC}/jobs/{job.id})")
        assert found["info"]["status"] == "FINISHED"
