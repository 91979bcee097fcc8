"""After a typo in ``benchpool.yaml`` and a crash, the last valid version is used and reported."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from benchpool_support.workstation import COMMAND, RunningWorkstation, start

pytestmark = pytest.mark.slow

GOOD = """\
version: 1
build: {default: 0, reserve: 1}
projects:
  - {name: research, quota: 5, members: [root]}
"""
TYPO = GOOD.replace("quota: 5", "qouta: 5")
TOO_MUCH = GOOD.replace("reserve: 1", "reserve: 99")


def benchpool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, timeout=120, check=False
    )


def problems(up: RunningWorkstation) -> str:
    return " ".join(up.scheduler.get("/status").json()["health"]["problems"])


def quota(up: RunningWorkstation) -> int:
    projects = up.scheduler.get("/status").json()["projects"]
    return int(next(it["quota"] for it in projects if it["name"] == "research"))


def restart_scheduler(up: RunningWorkstation) -> None:
    os.kill(up.scheduler_pid(), signal.SIGKILL)
    up.wait_event("scheduler-restarted")


@pytest.mark.timeout(300)
def test_last_valid_configuration_is_used_after_restart(tmp_path: Path) -> None:
    config = tmp_path / "pool.yaml"
    config.write_text(GOOD)
    state = tmp_path / "state"
    with start(state, config=config) as up:
        assert problems(up) == ""
        config.write_text(TYPO)
        restart_scheduler(up)
        assert quota(up) == 5
        for words in (
            str(config),
            "line 4",
            "qouta",
            "`quota`",
            f"benchpool config apply {config}",
        ):
            assert words in problems(up)
        result = benchpool("status", *where(up))
        assert "qouta" in result.stdout, result

        # The advice works as typed, and the next start reads the corrected file.
        config.write_text(GOOD.replace("quota: 5", "quota: 4"))
        applied = benchpool("config", "apply", str(config), *where(up))
        assert applied.returncode == 0, applied
        assert (problems(up), quota(up)) == ("", 4)

        # The same holds for a readable file that does not fit this machine.
        config.write_text(TOO_MUCH)
        restart_scheduler(up)
        assert quota(up) == 4
        assert "99" in problems(up)

    # The same holds after a restart of the whole machine.
    config.write_text(TYPO)
    with start(state, config=config) as up:
        assert quota(up) == 4
        assert "qouta" in problems(up)


def where(up: RunningWorkstation) -> list[str]:
    service = up.ready["scheduler_api"].removesuffix("/api/v1")
    return ["--url", service, "--token", up.ready["admin_token"]]
