"""``benchpool submit`` in a script during a restart of the Hub."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchpool_support.workstation import COMMAND, RunningWorkstation, start

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SUBMISSIONS = 9


@pytest.fixture
def up(tmp_path: Path) -> Iterator[RunningWorkstation]:
    with start(tmp_path / "state") as running:
        yield running


def submit(up: RunningWorkstation, folder: Path, number: int) -> subprocess.CompletedProcess[str]:
    """Run a script's submission through the proxy's address, as users do."""
    here = {
        "BENCHPOOL_URL": f"{up.ready['url'].rstrip('/')}/services/benchpool",
        "BENCHPOOL_TOKEN": up.ready["admin_token"],
    }
    line = [*COMMAND, "submit", "--key", f"job-{number}", "--", "true"]
    return subprocess.run(
        line, env={**os.environ, **here}, cwd=folder, capture_output=True, text=True, timeout=200
    )


def test_submissions_during_hub_restart_create_one_job_each(
    up: RunningWorkstation, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    with ThreadPoolExecutor(2) as script:
        os.kill(up.hub_pid(), signal.SIGKILL)
        sent = [script.submit(submit, up, folder, number) for number in range(SUBMISSIONS)]
        results = [it.result() for it in sent]
    assert [it.returncode for it in results] == [0] * SUBMISSIONS, [it.stderr for it in results]
    jobs = up.scheduler.get("/jobs", params={"all": "true"}).json()
    assert [it["name"] for it in jobs if it["name"] != "self-test"] == ["true"] * SUBMISSIONS
    assert not any("<html" in it.stdout + it.stderr for it in results)
