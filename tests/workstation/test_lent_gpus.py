"""One machine lends idle bench GPUs too; the owner's server waits until they are back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_support.workstation import RunningWorkstation, start

pytestmark = pytest.mark.slow

CONFIGURATION = """\
version: 1
build: {default: 0, users: {susan: 2}, lend_idle: true}
projects: [{name: research, quota: 0, members: [susan]}]
policy: {grace_s: 10}
"""
SAVES = "import signal, sys, time\nsignal.signal(15, lambda *_: sys.exit(3))\ntime.sleep(600)"


@pytest.fixture(scope="module")
def lending(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorkstation]:
    """Yield a workstation with two GPUs, both of susan's bench and lent."""
    folder: Path = tmp_path_factory.mktemp("lending")
    config = folder / "pool.yaml"
    config.write_text(CONFIGURATION)
    with start(folder / "state", gpus=2, config=config) as running:
        running.add_user("susan")
        yield running


def test_server_start_reclaims_lent_bench_gpus(
    lending: RunningWorkstation,
) -> None:
    client = lending.scheduler_as(lending.token_of("susan"))
    entry = {"kind": "command", "argv": [sys.executable, "-c", SAVES]}
    job = client.post("/jobs", json={"entry": entry, "gpus": 2}).json()
    lending.wait_job(job["id"], "running")
    lending.start_server("susan", gpus=1)
    waits = lending.wait_job(job["id"], "queued")
    assert [it["rule"] for it in waits["preemptions"]] == ["R3"]
    (lease,) = lending.leases("susan")
    assert len(lease["gpus"]) == 1
    assert waits["reason"]["code"] in ("next-pass", "fair-share-reached", "pool-full")
    lending.stop_server("susan")
    lending.wait_leases("susan", 0)
    lending.wait_job(job["id"], "running")
