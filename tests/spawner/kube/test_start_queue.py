"""Starts on a real Hub wait in the queue while GPUs are lent or overbooked."""

from __future__ import annotations

import re
import signal
from datetime import UTC, datetime
from typing import Any

import pytest

from benchpool_cluster.access import Access
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_support.kube_hub import KubeHub
from benchpool_support.serving import PEOPLE

pytestmark = pytest.mark.kubernetes

CONFIG = """
c.QuotaMixin.longest_wait = 60
c.Spawner.start_timeout = 10
"""


def waiting(hub: KubeHub, user: str) -> dict[str, Any]:
    """Return the first progress step that contains the queue position."""

    def look() -> dict[str, Any] | None:
        return next((step for step in hub.progress(user) if "queue" in step), None)

    found: dict[str, Any] = hub.until(look)
    return found


@pytest.mark.usefixtures("full")
def test_queued_start_outlasts_timeout_and_shows_position(hub: KubeHub, scheduler: Any) -> None:
    for user in ("amy", "bea"):
        hub.add_user(user)
        assert hub.ask_server(user, gpus=2).status_code == 202
        waiting(hub, user)
    first, second = waiting(hub, "amy"), waiting(hub, "bea")
    assert first["queue"]["position"] == 1
    assert (second["queue"]["position"], second["queue"]["length"]) == (2, 2)
    assert second["queue"]["reason"]["code"] == "benches-full"
    assert re.search(
        r"You are number 2 of 2 in the queue: 2 GPUs are not free: 0 on one machine now, 8 GPUs "
        r"held by 2 other servers\.",
        second["message"],
    )
    hub.until(lambda: _seconds(hub, "bea") > 12)
    hub.stop_server("king", "s0")
    hub.wait_ready("amy")
    hub.wait_ready("bea")
    assert [len(gpus) for gpus in scheduler.leases("bea")] == [2]
    for user in ("amy", "bea"):
        hub.stop_server(user)
        hub.wait_gone(user)


def _seconds(hub: KubeHub, user: str) -> float:
    """Return how long a start has been pending, in seconds."""
    found = hub.api("GET", f"users/{user}?include_stopped_servers").json()["servers"][""]
    assert found["pending"] == "spawn"
    started = datetime.fromisoformat(found["started"])
    return (datetime.now(UTC) - started).total_seconds()


@pytest.mark.usefixtures("full")
def test_cancelled_start_leaves_queue(hub: KubeHub, scheduler: Any) -> None:
    for user in ("cat", "dan"):
        hub.add_user(user)
        hub.ask_server(user, gpus=2)
        waiting(hub, user)
    hub.stop_server("cat")
    hub.wait_gone("cat")
    hub.stop_server("king", "s0")
    hub.wait_ready("dan")
    assert scheduler.leases("cat") == []
    hub.stop_server("dan")
    hub.wait_gone("dan")


@pytest.mark.usefixtures("full")
def test_busy_choice_starts_without_gpu_or_refuses(hub: KubeHub, scheduler: Any) -> None:
    hub.add_user("flo")
    hub.ask_server("flo", gpus=2, when_busy="start-without-gpu")
    hub.wait_ready("flo")
    assert scheduler.leases("flo") == []
    hub.stop_server("flo")
    hub.wait_gone("flo")
    answer = hub.ask_server("flo", gpus=2, when_busy="refuse")
    if answer.status_code == 202:
        # The Hub has no progress while it cleans up after a failed start.
        sentence = hub.until(lambda: list(hub.progress("flo")))[-1]["message"]
    else:
        assert answer.status_code == 503
        assert answer.headers["Retry-After"]
        sentence = answer.json()["message"]
    assert "2 GPUs for this server are not free: 0 on one machine now" in sentence
    hub.wait_gone("flo")


@pytest.mark.usefixtures("full")
def test_scheduler_restart_keeps_queue_positions(hub: KubeHub, scheduler: Any) -> None:
    for user in ("gil", "hal"):
        hub.add_user(user)
        hub.ask_server(user, gpus=2)
        waiting(hub, user)
    scheduler.stop()
    scheduler.start()
    hub.until(lambda: [len(g) for g in scheduler.leases("king")] == [4, 4])
    hub.until(lambda: _last_place(hub, "hal") == (2, 2), 30)
    hub.stop_server("king", "s0")
    hub.wait_ready("gil")
    hub.wait_ready("hal")
    for user in ("gil", "hal"):
        hub.stop_server(user)
        hub.wait_gone(user)


@pytest.mark.usefixtures("full")
def test_hub_restart_keeps_queue_positions(hub: KubeHub, scheduler: Any) -> None:
    for user in ("kay", "leo"):
        hub.add_user(user)
        hub.ask_server(user, gpus=2)
        waiting(hub, user)
    hub.stop(signal.SIGKILL)
    hub.start()
    for user in ("leo", "kay"):  # the second user starts first
        assert hub.server(user) is None
        hub.ask_server(user, gpus=2)
        waiting(hub, user)
    assert waiting(hub, "kay")["queue"]["position"] == 1
    hub.until(lambda: _last_place(hub, "leo") == (2, 2), 30)
    hub.stop_server("king", "s0")
    for user in ("kay", "leo"):
        hub.wait_ready(user)
        assert [len(gpus) for gpus in scheduler.leases(user)] == [2]
        hub.stop_server(user)
        hub.wait_gone(user)


@pytest.mark.usefixtures("full")
def test_gpus_freed_during_hub_restart_go_to_queued_user(
    hub: KubeHub, scheduler: Any, access: Access
) -> None:
    hub.add_user("max")
    hub.ask_server("max", gpus=2)
    waiting(hub, "max")
    hub.stop(signal.SIGKILL)
    path = f"/api/v1/namespaces/{hub.namespace}/pods"
    for pod in access.get(path)["items"]:
        if pod["metadata"]["annotations"].get("hub.jupyter.org/servername") == "s0":
            access.delete(f"{path}/{pod['metadata']['name']}")
    service, root = scheduler.service, PEOPLE["root"]
    freed = next(one for one in service.pool.benches.leases(root, "king") if one.server == "s0")
    service.do(service.pool.benches.release(PEOPLE["hub"], freed.id))
    # It reaches the front of the queue while no Hub is running.
    hub.until(lambda: scheduler.leases("max") != [])
    hub.start()
    hub.ask_server("max", gpus=2)
    hub.wait_ready("max")
    assert [len(gpus) for gpus in scheduler.leases("max")] == [2]
    hub.stop_server("max")
    hub.wait_gone("max")
    hub.until(lambda: scheduler.leases("max") == [])


def _last_place(hub: KubeHub, user: str) -> tuple[int, int]:
    """Return the newest queue position and queue length.

    The progress stream ends only with the start, so only a part of it is read.
    """
    place = (0, 0)
    for step in hub.progress(user):
        if "queue" in step:
            place = step["queue"]["position"], step["queue"]["length"]
            if place == (2, 2):
                break
    return place


def test_server_start_reclaims_lent_gpus(hub: KubeHub, scheduler: Any) -> None:
    # The pool of these tests reserves all GPUs for benches and lends them.
    job = JobSubmission(entry=CommandEntry(["sleep", "1000"]), gpus=4, workers=2)
    service, joe = scheduler.service, PEOPLE["joe"]
    assert service.pool.benches.leases(PEOPLE["root"]) == []
    accepted = service.do(service.pool.jobs.submit(joe, job))
    service.do(scheduler.runtime.until_launched(2))
    hub.add_user("ida")
    hub.ask_server("ida", gpus=2)
    step = waiting(hub, "ida")
    assert step["queue"]["reason"]["code"] == "bench-called-back"
    assert "You are next: 2 GPUs of the 2 are still in use by jobs" in step["message"]
    assert "It starts within" in step["message"]
    for worker, _ in service.do(scheduler.runtime.until_noticed(2)):
        scheduler.service.loop.call_soon_threadsafe(scheduler.runtime.end, worker, 143)
    hub.wait_ready("ida")
    assert [len(gpus) for gpus in scheduler.leases("ida")] == [2]
    service.do(service.pool.jobs.act(joe, accepted.id, "cancel"))
    hub.stop_server("ida")
    hub.wait_gone("ida")
