"""All features of the Hub, on the oldest JupyterHub that the distribution accepts."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from benchpool_support import hub_environments
from benchpool_support.names_of_a_site import (
    administrators_browser,
    follow_to_pool,
    jobs_seen_from,
    open_lab,
    start_with_subdomains,
)
from benchpool_support.workstation import COMMAND, RunningWorkstation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


HUBS_PATIENCE_S = 10
"""Time that this Hub waits for a service before it ends, in seconds."""

BEGINS_LATE = f"""
import sys, time

if "benchpool_scheduler.app" in sys.orig_argv:
    time.sleep({HUBS_PATIENCE_S})
"""
"""Two processes do so in sequence: the keeper of the scheduler, and the scheduler. On a slow
machine the Hub begins to wait some seconds after the first.
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorkstation]:
    """Yield a workstation that starts slowly, as on a busy machine."""
    folder = tmp_path_factory.mktemp("oldest")
    python = hub_environments.python(hub_environments.oldest())
    config = folder / "pool.yaml"
    config.write_text("version: 1\nbuild: {default: 1}\nprojects: [{name: all, quota: 1}]\n")
    late = folder / "late"
    late.mkdir()
    (late / "sitecustomize.py").write_text(BEGINS_LATE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(late))
        with start_with_subdomains(
            folder / "state", gpus=4, config=config, command=[str(python), *COMMAND[1:]]
        ) as running:
            yield running


@pytest.fixture(scope="module")
def browser(up: RunningWorkstation) -> Iterator[httpx.Client]:
    with administrators_browser(up) as browser:
        yield browser


def test_oldest_jupyterhub_runs(up: RunningWorkstation) -> None:
    assert up.hub.get("/").json()["version"] == hub_environments.oldest()


def test_late_scheduler_is_awaited(up: RunningWorkstation) -> None:
    assert up.ready["seconds"] > HUBS_PATIENCE_S
    assert "Cannot connect to benchpool service" in (up.state / "logs" / "hub.log").read_text()


def test_hub_and_pool_pages_open_after_login(up: RunningWorkstation, browser: httpx.Client) -> None:
    follow_to_pool(up, browser)


def test_server_respects_quota_and_reaches_pool(
    up: RunningWorkstation, browser: httpx.Client
) -> None:
    admin = up.hub.get("/user").json()["name"]
    refused = up.ask_server(admin, gpus=2)
    assert refused.status_code == 409
    assert "more than the build quota of" in refused.json()["message"]
    up.start_server(admin, gpus=1)
    up.wait_leases(admin, 1)
    jobs_seen_from(browser, open_lab(up, browser, admin), admin)
    up.stop_server(admin)
    up.wait_leases(admin, 0)
