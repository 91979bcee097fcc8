"""JupyterLab in the full sandbox of servers: terminals, jobs and restarts work as usual."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import httpx
import pytest

from benchpool_scheduler.worker import process_identity
from benchpool_scheduler.worker.supervisor import probe
from benchpool_support.terminals import typed
from benchpool_support.waiting import until
from benchpool_support.workstation import RunningWorkstation, start

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

HERE = probe.look()
OPTIONS = ("--server-sandbox", "full", "--server-memory", "6")
CONFIGURATION = (
    "version: 1\nbuild: {default: 1}\nprojects: [{name: lab, quota: 4, members: [joe]}]\n"
)
GONE_S = 120.0


def lab(up: RunningWorkstation) -> httpx.Client:
    return httpx.Client(
        base_url=f"{up.ready['url']}user/joe/",
        headers={"Authorization": f"token {up.token_of('joe')}"},
        timeout=60,
        trust_env=False,
    )


def state_of(up: RunningWorkstation) -> dict[str, object]:
    answer = up.hub.get("/users/joe", params={"include_stopped_servers": "1"})
    state: dict[str, object] = answer.json()["servers"][""]["state"]
    return state


@pytest.mark.skipif("tmp" not in HERE.private, reason="no namespaces can be made here")
async def test_sandboxed_lab_survives_hub_restart_and_cleans_up(
    tmp_path: Path,
) -> None:
    state, config = tmp_path / "state", tmp_path / "pool.yaml"
    private = Path("/tmp", f"of-joe-{os.getpid()}")
    config.write_text(CONFIGURATION)
    with start(state, config=config, arguments=OPTIONS, clear=False) as first:
        first.add_user("joe")
        first.start_server("joe", gpus=1)
        pid = first.server_pid("joe")
        made = state_of(first)["sandbox"]
        assert isinstance(made, dict)
        assert "NoNewPrivs:\t1" in Path(f"/proc/{pid}/status").read_text()
        shown = await typed(
            lab(first),
            f"echo secret > {private}; echo bound $(grep -c benchpool-server /proc/self/cgroup)",
            "benchpool submit --name typed --gpus 1 -- true && echo sent it",
            "nohup sleep 1000 > nohup.out 2>&1 & echo $! > nohup; disown",
        )
        assert "sent it" in shown.rpartition("echo sent it")[2]
        assert not private.exists()
        behind = int((state / "homes" / "joe" / "nohup").read_text())
        assert process_identity.start_ticks(behind) is not None
        if "memory" in HERE.bounds:
            assert "memory" in made["holds"]
            assert "bound 0" not in shown
        job = first.scheduler.get("/jobs", params={"all": "true"}).json()[0]
        first.wait_job(job["id"], "succeeded")

        os.kill(first.scheduler_pid(), signal.SIGKILL)
        assert first.hub.get("/users/joe").status_code == 200
        assert process_identity.start_ticks(pid) is not None

    with start(state, config=config, arguments=OPTIONS) as second:
        assert second.server_pid("joe") == pid
        shown = await typed(lab(second), f"echo it holds $(cat {private})")
        assert "it holds secret" in shown
        assert len(second.leases("joe")) == 1
        second.stop_server("joe")
        second.wait_leases("joe", 0)
        assert process_identity.start_ticks(pid) is None
        assert process_identity.start_ticks(behind) is None
        until(
            lambda: [it for it in (*made["groups"], made["folder"]) if os.path.exists(it)],
            "cgroups and folder are gone",
            holds=lambda left: not left,
        )


async def test_leftover_processes_end_before_gpu_is_leased_again(
    tmp_path: Path,
) -> None:
    """Without a sandbox there is no cgroup either, as in most containers."""
    config = tmp_path / "pool.yaml"
    config.write_text(CONFIGURATION)
    arguments = ("--server-sandbox", "off")
    with start(tmp_path / "state", config=config, arguments=arguments) as up:
        up.add_user("joe")
        up.start_server("joe", gpus=1)
        shown = await typed(
            lab(up),
            "nohup sleep 1000 > nohup.out 2>&1 & echo $! > nohup; disown",
            "env -i setsid sh -c 'echo $$ > env; exec sleep 1000' > env.out 2>&1 & disown",
            "until [ -s env ]; do sleep 0.1; done; readlink -f nohup env",
        )
        files = [line for line in shown.split() if line.endswith(("/nohup", "/env"))]
        pids = [int(Path(file).read_text()) for file in files]
        assert len(pids) == 2
        assert all(process_identity.start_ticks(pid) for pid in pids)
        up.stop_server("joe")
        up.wait_leases("joe", 0)
        assert [process_identity.start_ticks(pid) for pid in pids] == [None, None]
