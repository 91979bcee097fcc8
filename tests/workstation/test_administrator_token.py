"""Expiry and rotation of the administrator's token; the previous token becomes invalid."""

from __future__ import annotations

import json
import re
import shlex
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchpool_scheduler.workstation import admin_token
from benchpool_scheduler.workstation.hub_api import HubApi
from benchpool_scheduler.workstation.hub_facts import secrets
from benchpool_scheduler.workstation.options import account
from benchpool_scheduler.workstation.state import StateFolder
from benchpool_support import direct
from benchpool_support.waiting import until
from benchpool_support.workstation import COMMAND, start

pytestmark = pytest.mark.slow


def rotated(state: Path) -> Path:
    words = ["token", "rotate", "--state", str(state), "--json"]
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, timeout=60, check=True
    )
    return Path(json.loads(done.stdout)["token_file"])


@pytest.mark.timeout(400)
async def test_rotated_token_becomes_invalid(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with start(state, gpus=2, auth="one-time", clear=False) as up:
        old = up.ready["admin_token"]
        api = up.ready["scheduler_api"]
        headers = {"Authorization": f"token {old}"}
        assert direct.get(f"{api}/status", headers=headers).status_code == 200

        file = rotated(state)
        assert file == state / "admin-token"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        new = file.read_text().strip()
        assert new != old
        until(lambda: direct.get(f"{api}/status", headers=headers).status_code == 401)
        headers = {"Authorization": f"token {new}"}
        assert direct.get(f"{api}/status", headers=headers).status_code == 200

        await check_renewal(StateFolder(state), up.ready["hub_api"], new)
        # `benchpool up` itself reads the file: at its end it counts the jobs that keep running.
        up.stop()
        assert up.wait_event("stopping")["jobs"] == 0


async def check_renewal(folder: StateFolder, hub_api: str, token: str) -> None:
    """Check that the token is valid for 90 days and replaced after 60 days."""
    hub = HubApi(hub_api, secrets(folder).hub_token)
    now = datetime.now(UTC)
    try:
        ends = await hub.end_of(token, account())
        assert ends is not None
        assert timedelta(days=89) < ends - now < timedelta(days=91)
        path = folder.admin_token
        assert await admin_token.current(hub, path, now + timedelta(days=59)) == token
        later = await admin_token.current(hub, path, now + timedelta(days=61))
        assert later != token
        assert path.read_text().strip() == later
        assert await hub.end_of(token, account()) is not None  # old token stays valid
    finally:
        await hub.close()


@pytest.mark.timeout(400)
def test_pool_with_missing_token_stops_as_advised(tmp_path: Path) -> None:
    state = tmp_path / "my state"
    with start(state, gpus=2, auth="one-time", clear=False) as up:
        (state / "admin-token").unlink()
        status, output = ran("down", "--state", str(state), "--jobs", "cancel")
        assert (status, "No such file or directory), and nothing was stopped" in output) == (
            4,
            True,
        )
        (advised,) = re.findall(r"`benchpool ([^`]+)`", output)
        assert ran(*shlex.split(advised))[0] == 0
        assert ran("down", "--state", str(state), "--jobs", "cancel")[0] == 0
        assert up.wait_event("stopping")["jobs"] == 0


@pytest.mark.timeout(400)
def test_pool_with_missing_token_stops_without_options(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with start(state, gpus=2, auth="one-time", clear=False) as up:
        (state / "admin-token").unlink()
        assert ran("down", "--state", str(state))[0] == 0
        up.wait_event("stopping")


def ran(*words: str) -> tuple[int, str]:
    """Return the exit status and the standard error of a command."""
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, " ".join(done.stderr.split())
