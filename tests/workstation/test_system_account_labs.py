"""JupyterLab under a system account: PAM login, sandbox, GPUs and jobs.

The account exists for ``benchpool up`` only: ``/etc/passwd`` has an additional line in a private
mount namespace. An interpreter in a folder closed to other accounts is made reachable there too.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchpool_scheduler.worker.supervisor import probe
from benchpool_scheduler.workstation import state as states
from benchpool_support.hub_session import logged_in
from benchpool_support.terminals import typed
from benchpool_support.workstation import COMMAND, RunningWorkstation, start

PASSWORD = "a plain password"
ACCOUNT, NUMBER = "bench-joe", 64321
# Output of `openssl passwd -6`.
HASHED = (
    "$6$benchpool$hpl/kcoFZoS3ea1cd3sJrBEWJ3uLWJMhYLzlJ"
    "TOw3FAklxrWlTmso4pbTWvlx3qLUiTYLIRGVjX0041f2GU9m1"
)
CONFIGURATION = f"""
version: 1
build: {{default: 1}}
projects: [{{name: lab, quota: 4, members: [{ACCOUNT}]}}]
"""
ENTER = """set -e; umask 022
folder=$1 closed=$2 python=$3; shift 3
for name in passwd shadow group; do mount --bind "$folder/$name" "/etc/$name"; done
if [ -n "$closed" ]; then
    mkdir "$folder/held"
    mount --bind "$python" "$folder/held"
    mount -t tmpfs -o mode=755 none "$closed"
    mkdir -p "$python"
    mount --move "$folder/held" "$python"
fi
exec "$@"
"""


def why_not() -> str:
    """Return why this machine cannot provide such an account for one command."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return "only root may start servers under other accounts"
    if not Path("/etc/pam.d/login").exists():
        return "this machine has no PAM for logins"
    if states.closed_to_others(Path(sys.prefix)):
        return "this environment lies where other accounts may not enter"
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        return "this machine lets root make no mount namespace"
    return ""


pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "can be tried"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder open to other accounts, with account files and a home."""
    made = Path(tempfile.mkdtemp(dir="/tmp"))
    made.chmod(0o711)
    (made / "home").mkdir(mode=0o700)
    os.chown(made / "home", NUMBER, NUMBER)
    lines = {
        "passwd": f"{ACCOUNT}:x:{NUMBER}:{NUMBER}::{made}/home:/bin/bash",
        "shadow": f"{ACCOUNT}:{HASHED}:19000::::::",
        "group": f"{ACCOUNT}:x:{NUMBER}:",
    }
    for name, line in lines.items():
        shutil.copy(f"/etc/{name}", made / name)
        with (made / name).open("a") as file:
            file.write(f"{line}\n")
    yield made
    shutil.rmtree(made)


@pytest.fixture
def up(folder: Path) -> Iterator[RunningWorkstation]:
    assert ACCOUNT not in {one.pw_name for one in pwd.getpwall()}
    (folder / "pool.yaml").write_text(CONFIGURATION)
    python = Path(sys.base_prefix)
    closed = states.closed_to_others(python)
    enter = ["unshare", "-m", "sh", "-c", ENTER, "sh", str(folder), str(closed or ""), str(python)]
    command = [*enter, *COMMAND]
    with start(
        folder / "state", config=folder / "pool.yaml", auth="pam", command=command
    ) as running:
        yield running


async def test_lab_runs_under_logged_in_account(up: RunningWorkstation, folder: Path) -> None:
    with (
        pytest.raises(AssertionError, match="Invalid username or password"),
        logged_in(up, ACCOUNT, "no such password"),
    ):
        pass
    with logged_in(up, ACCOUNT, PASSWORD) as person:
        assert person.get("/hub/home").url.path.endswith("/home")
        up.start_server(ACCOUNT, gpus=1)
        page = person.get(f"/user/{ACCOUNT}/lab")
        assert (page.status_code, "jupyter-config-data" in page.text) == (200, True)

    status = Path(f"/proc/{up.server_pid(ACCOUNT)}/status").read_text()
    assert f"Uid:\t{NUMBER}\t{NUMBER}\t{NUMBER}\t{NUMBER}" in status
    assert "NoNewPrivs:\t1" in status
    lab = httpx.Client(
        base_url=f"{up.ready['url']}user/{ACCOUNT}/",
        headers={"Authorization": f"token {up.token_of(ACCOUNT)}"},
        timeout=60,
        trust_env=False,
    )
    private = Path("/tmp", f"of-joe-{os.getpid()}")
    shown = await typed(
        lab,
        f"echo I am $(id -un) at $PWD; touch {private}",
        "echo others: $(ps -eo user= | grep -vc ^bench-joe)",
        "benchpool submit --name typed --gpus 1 -- sh -c 'id -un > $BENCHPOOL_OUTPUT_DIR/who' "
        "&& echo sent it",
    )
    assert f"I am {ACCOUNT} at {folder}/home" in shown
    assert "sent it" in shown.rpartition("echo sent it")[2]
    if "processes" in probe.look().private:
        assert "others: 0" in shown
    assert not private.exists()
    job = up.scheduler.get("/jobs", params={"all": "true"}).json()[0]
    up.wait_job(job["id"], "succeeded")
    who = folder / "state" / "jobs" / job["id"] / "output" / "who"
    assert (who.read_text(), who.stat().st_uid) == (f"{ACCOUNT}\n", NUMBER)
    up.stop_server(ACCOUNT)
    up.wait_leases(ACCOUNT, 0)
    assert list((folder / "state" / "hub" / "server-tmp").iterdir()) == []
