"""Notebook servers on a fixed GPU quota, with a real Hub, scheduler and servers (R2)."""

from __future__ import annotations

import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchpool_support import direct
from benchpool_support.hub_session import logged_in, xsrf
from benchpool_support.workstation import RunningWorkstation

pytestmark = pytest.mark.slow

ACCEPTED = (201, 202)


def environment(pid: int) -> dict[str, str]:
    raw = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in raw if pair)


def test_concurrent_starts_respect_quota(
    up: RunningWorkstation,
) -> None:
    names = [f"s{i}" for i in range(6)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda name: up.ask_server("susan", name, gpus=1), names))
    started = [n for n, a in zip(names, answers, strict=True) if a.status_code in ACCEPTED]
    refused = [answer for answer in answers if answer.status_code == 409]
    assert (len(started), len(refused)) == (2, 4)
    for answer in refused:
        assert re.search(r"build quota of susan: 2 .*2 held", answer.json()["message"])

    for name in started:
        up.wait_server("susan", name)
    pids = {name: up.server_pid("susan", name) for name in started}
    found = {name: environment(pid) for name, pid in pids.items()}
    given = {lease["server"]: ",".join(lease["gpus"]) for lease in up.leases("susan")}
    assert {name: env["CUDA_VISIBLE_DEVICES"] for name, env in found.items()} == given
    assert len(set(given.values())) == 2
    first = found[started[0]]
    assert first["CUDA_VISIBLE_DEVICES"].startswith("GPU-")
    assert first["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"

    secrets = [path.read_text().strip() for path in (up.state / "hub").glob("*token*")]
    assert not [s for s in secrets if s in str(first)]
    assert not [name for name in first if "FACTS" in name or "CONFIGPROXY" in name]

    token, url = first["JUPYTERHUB_API_TOKEN"], first["BENCHPOOL_URL"]
    quota = direct.get(f"{url}/api/v1/quota", headers={"Authorization": f"token {token}"})
    assert quota.status_code == 200, quota.text
    assert (quota.json()["user"], quota.json()["build"]["free"]) == ("susan", 0)

    os.kill(pids[started[0]], signal.SIGKILL)
    up.wait_leases("susan", 1)
    up.stop_server("susan", started[1])
    assert up.leases("susan") == []


def test_refusal_is_identical_in_api_form_and_failed_page(
    up: RunningWorkstation,
) -> None:
    message = up.ask_server("joe", "big", gpus=2).json()["message"]
    assert re.search(r"2 GPUs .*build quota of joe: 1 \(user joe\)", message)
    with logged_in(up, "joe") as session:
        form = session.get("/hub/spawn/joe/big")
        assert "Your build quota: <strong>1 GPU</strong>" in form.text
        assert "exceeds your build quota of 1" in form.text
        assert "simulated" in form.text
        answer = session.post(f"/hub/spawn/joe/big?_xsrf={xsrf(session)}", data={"gpus": "2"})
        assert answer.status_code == 409
        assert message in answer.text
        assert 'id="benchpool-gpus-0"' in answer.text  # the form is shown again
        failed = session.get("/hub/spawn-pending/joe/big")
        assert message in failed.text
        for page in (answer, failed):
            assert "Traceback" not in page.text


def test_invalid_options_are_rejected(up: RunningWorkstation) -> None:
    answer = up.ask_server("joe", "odd", gpus="many")
    assert (answer.status_code, "0 to 1024" in answer.text) == (400, True)
    answer = up.ask_server("joe", "odd", gpu=1)
    assert (answer.status_code, "did you mean gpus" in answer.text) == (400, True)
    with logged_in(up, "joe") as session:
        page = session.get("/hub/spawn/joe/odd?gpus=-3")
        assert (page.status_code, "whole number" in page.text) == (400, True)


def test_twenty_refusals_do_not_stop_hub(up: RunningWorkstation) -> None:
    hub = up.hub_pid()
    for i in range(20):
        assert up.ask_server("joe", f"no{i}", gpus=2).status_code == 409
    assert up.ask_server("joe", "no", gpus="x").status_code == 400
    assert up.hub.get("/").status_code == 200
    assert up.hub_pid() == hub


def test_group_property_sets_quota_at_next_start(
    up: RunningWorkstation,
) -> None:
    up.add_user("ben")
    assert "build quota of ben: 0" in up.ask_server("ben", gpus=1).text
    with up.group("lab", "ben"):
        properties = {"benchpool": {"build_quota": 1}}
        assert up.hub.put("/groups/lab/properties", json=properties).status_code == 200
        assert up.ask_server("ben", gpus=1).status_code in ACCEPTED
        assert len(up.leases("ben")) == 1
        # Stopping a start before it is ready releases the lease.
        up.stop_server("ben")
        up.wait_leases("ben", 0)


def test_failed_start_releases_lease_with_reason(up: RunningWorkstation) -> None:
    (up.state / "homes" / "ada").write_text("a file where the home folder should be")
    answer = up.ask_server("ada", gpus=1)
    assert (answer.status_code, "home folder" in answer.text) == (503, True)
    up.wait_leases("ada", 0)


def refused(up: RunningWorkstation, user: str, name: str) -> bool:
    """Request a server that must not start; return whether it does not.

    A scheduler that restarts slowly refuses after the Hub's answer.
    """
    status = up.ask_server(user, name, gpus=1).status_code
    if status == 202:
        up.wait_stopped(user, name)
    return status in (202, 409)


def test_leases_survive_kill_of_scheduler_and_hub(up: RunningWorkstation) -> None:
    up.start_server("jemma", "kept", gpus=1)
    before = up.held("jemma")
    assert len(before) == 1
    pid = up.server_pid("jemma", "kept")

    os.kill(up.scheduler_pid(), signal.SIGKILL)
    # The next start waits for the scheduler, which the Hub's keeper restarts.
    assert refused(up, "jemma", "second")
    assert up.held("jemma") == before

    os.kill(up.hub_pid(), signal.SIGKILL)
    up.wait_event("hub-restarted")
    assert up.wait_server("jemma", "kept")["ready"]
    assert up.server_pid("jemma", "kept") == pid
    assert up.held("jemma") == before
    assert refused(up, "jemma", "third")

    up.stop_server("jemma", "kept")
    up.wait_leases("jemma", 0)


@pytest.mark.timeout(300)
def test_server_without_gpu_starts_without_scheduler(
    up: RunningWorkstation,
) -> None:
    scheduler = up.scheduler_pid()
    os.kill(scheduler, signal.SIGSTOP)
    try:
        up.start_server("joe", "plain", gpus=0)
        with logged_in(up, "joe") as session:
            form = session.get("/hub/spawn/joe/other")
            assert "The scheduler does not answer" in form.text
    finally:
        os.kill(scheduler, signal.SIGCONT)
    assert environment(up.server_pid("joe", "plain"))["CUDA_VISIBLE_DEVICES"] == ""
    up.stop_server("joe", "plain")


def test_browser_session_opens_pool_page(up: RunningWorkstation) -> None:
    with logged_in(up, "joe") as session:
        page = session.get("/services/benchpool/")
        assert (page.status_code, page.url.path) == (200, "/services/benchpool/")
        assert "joe" in page.text


def test_sighup_reloads_whole_configuration_or_nothing(up: RunningWorkstation) -> None:
    text = up.config.read_text()
    up.config.write_text(text.replace("ada: 1", "ada: one"))
    up.process.send_signal(signal.SIGHUP)
    assert "line" in up.wait_event("configuration-refused")["text"]
    # A lower quota for one user always fits, whatever other tests guarantee.
    up.config.write_text(text.replace("joe: 1", "joe: 0"))
    up.process.send_signal(signal.SIGHUP)
    assert "joe" in up.wait_event("configuration")["text"]
    assert "build quota of joe: 0" in up.ask_server("joe", gpus=3).text
    up.config.write_text(text)
    up.process.send_signal(signal.SIGHUP)
    up.wait_event("configuration")
