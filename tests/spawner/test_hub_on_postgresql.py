"""The chart's Hub keeps its users in PostgreSQL if the chart has a database URL."""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchpool_cluster import chart
from benchpool_scheduler.workstation import proxy
from benchpool_support import direct, postgresql
from benchpool_support.kube_hub import Notebooks
from benchpool_support.loopback import free_port
from benchpool_support.waiting import until

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.skipif(postgresql.INITDB is None, reason=postgresql.MISSING),
]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    """Yield the URL of an empty database on a private loopback server."""
    with tempfile.TemporaryDirectory(prefix="benchpool-postgresql-") as folder:
        yield from postgresql.serving(Path(folder), tmp_path / "postgresql.log")


HERE = """
import json, os
ports = json.loads(os.environ["PORTS"])
c.JupyterHub.bind_url = f"http://127.0.0.1:{ports[0]}/"
c.JupyterHub.hub_bind_url = c.JupyterHub.hub_connect_url = f"http://127.0.0.1:{ports[1]}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{ports[2]}"
c.ConfigurableHTTPProxy.should_start = True
c.ConfigurableHTTPProxy.command = json.loads(os.environ["PROXY_COMMAND"])
"""
"""Settings that only a cluster provides otherwise: addresses and an external proxy."""


@contextmanager
def hub(folder: Path, url: str) -> Iterator[Callable[..., httpx.Response]]:
    """Run the Hub as the chart configures it; yield a function that calls its API."""
    values = {"hub": {"database": {"url": url}, "extraConfig": {"here": HERE}}}
    rendered = chart.render(values)
    for name, text in rendered.the("Secret", "benchpool-hub")["stringData"].items():
        (folder / name).write_text(text)
    secrets = rendered.the("Secret", "benchpool-secrets")["data"]
    scheduler = Notebooks()
    ports = [free_port() for _ in range(3)]
    found = proxy.find(os.environ) or proxy.install(os.environ)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'spawner'}:{ROOT / 'scheduler'}",
        "BENCHPOOL_HUB_FACTS": str(folder / "hub.json"),
        # The Hub waits some time for services that do not answer.
        "BENCHPOOL_SCHEDULER_URL": f"http://127.0.0.1:{scheduler.port}/services/benchpool",
        "PORTS": str(ports),
        "PROXY_COMMAND": str(list(found.command)).replace("'", '"'),
        **_given(rendered.the("Deployment", "benchpool-hub"), secrets),
    }
    argv = [sys.executable, "-m", "jupyterhub", "-f", str(ROOT / "hub_config" / "cluster.py")]
    token = environment["BENCHPOOL_HUB_TOKEN"]
    log = folder / "hub.log"

    def call(method: str, path: str) -> httpx.Response:
        headers = {"Authorization": f"token {token}"}
        return direct.request(
            method, f"http://127.0.0.1:{ports[0]}/hub/api/{path}", headers=headers, timeout=30
        )

    def answers() -> bool:
        try:
            return call("GET", "info").is_success
        except httpx.HTTPError:
            return False

    try:
        with postgresql.process(argv, log, cwd=folder, env=environment):
            until(answers, lambda: log.read_text()[-4000:])
            yield call
    finally:
        scheduler.close()


def _given(deployment: Mapping[str, Any], secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the Hub's container gets from the release's secret."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {
        one["name"]: base64.b64decode(secrets[one["valueFrom"]["secretKeyRef"]["key"]]).decode()
        for one in container["env"]
        if "valueFrom" in one
    }


def test_chart_hub_stores_users_in_postgresql(tmp_path: Path, database: str) -> None:
    with hub(tmp_path, database) as call:
        assert call("POST", "users/susan").status_code == 201
    with hub(tmp_path, database) as call:
        assert {user["name"] for user in call("GET", "users").json()} == {"admin", "susan"}
    assert list(tmp_path.glob("*.sqlite")) == []
