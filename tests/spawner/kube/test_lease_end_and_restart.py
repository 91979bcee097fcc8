"""A lease ends with its server in every case; restarts lose neither servers nor GPUs."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from benchpool_cluster.access import Access
from benchpool_scheduler.contract.kubernetes import ADMISSION_GATE, LEASE
from benchpool_support.kube_hub import KubeHub

pytestmark = pytest.mark.kubernetes

CONFIG = """
c.Spawner.start_timeout = 8
c.Spawner.http_timeout = 5
def broken(spawner, pod):
    if spawner.user.name == "kim":
        raise RuntimeError("the hook has a fault")
c.KubeSpawner.after_pod_created_hook = broken
"""


def pods(access: Access, hub: KubeHub, user: str) -> list[dict[str, Any]]:
    found = access.get(f"/api/v1/namespaces/{hub.namespace}/pods")["items"]
    name = "hub.jupyter.org/username"
    return [pod for pod in found if pod["metadata"]["annotations"][name] == user]


def test_unadmitted_pod_times_out_and_releases_gpus(
    hub: KubeHub, access: Access, scheduler: Any, admitter: Any
) -> None:
    hub.add_user("ann")
    admitter.open.clear()
    try:
        hub.ask_server("ann", gpus=1)
        hub.until(lambda: pods(access, hub, "ann"))
        (pod,) = pods(access, hub, "ann")
        assert [gate["name"] for gate in pod["spec"]["schedulingGates"]] == [ADMISSION_GATE]
        steps = list(hub.progress("ann"))
        gated = [step for step in steps if step.get("state", {}).get("code") == "SchedulingGated"]
        assert "Waiting for admission by the scheduler" in gated[0]["message"]
        assert "did not start within 8 s; last status: Waiting for admission" in str(steps[-1])
        hub.until(lambda: scheduler.leases("ann") == [])
        hub.wait_gone("ann")
        assert pods(access, hub, "ann") == []
    finally:
        admitter.open.set()


def test_cancelled_start_releases_gpus(
    hub: KubeHub, access: Access, scheduler: Any, admitter: Any
) -> None:
    hub.add_user("bob")
    admitter.open.clear()
    try:
        hub.ask_server("bob", gpus=2)
        hub.until(lambda: pods(access, hub, "bob"))
        hub.stop_server("bob")
        hub.until(lambda: scheduler.leases("bob") == [])
        hub.until(lambda: pods(access, hub, "bob") == [])
    finally:
        admitter.open.set()


def test_failed_start_releases_gpus(hub: KubeHub, access: Access, scheduler: Any) -> None:
    hub.add_user("kim")
    hub.ask_server("kim", gpus=1)
    hub.wait_gone("kim")
    hub.until(lambda: scheduler.leases("kim") == [])
    assert pods(access, hub, "kim") == []


def test_unresponsive_server_releases_gpus(hub: KubeHub, scheduler: Any) -> None:
    hub.add_user("lea")
    hub.notebooks.answers = False
    try:
        hub.ask_server("lea", gpus=1)
        hub.wait_gone("lea")
    finally:
        hub.notebooks.answers = True
    hub.until(lambda: scheduler.leases("lea") == [])


def test_deleted_pod_releases_gpus(hub: KubeHub, access: Access, scheduler: Any) -> None:
    hub.add_user("max")
    hub.ask_server("max", gpus=2)
    hub.wait_ready("max")
    (pod,) = pods(access, hub, "max")
    access.delete(f"/api/v1/namespaces/{hub.namespace}/pods/{pod['metadata']['name']}")
    hub.until(lambda: scheduler.leases("max") == [])
    hub.wait_gone("max")


def test_server_survives_restart_of_hub_and_scheduler(
    hub: KubeHub, access: Access, scheduler: Any
) -> None:
    hub.add_user("ned")
    hub.ask_server("ned", gpus=2)
    hub.wait_ready("ned")
    before, (pod,) = scheduler.leases("ned"), pods(access, hub, "ned")
    hub.stop(signal.SIGKILL)
    scheduler.stop()
    scheduler.start()
    hub.start()
    assert hub.wait_ready("ned")["ready"]
    assert scheduler.leases("ned") == before
    (again,) = pods(access, hub, "ned")
    assert again["metadata"]["uid"] == pod["metadata"]["uid"]
    hub.stop_server("ned")
    hub.wait_gone("ned")
    hub.until(lambda: scheduler.leases("ned") == [])


def test_start_interrupted_by_hub_kill_is_cleaned_up(
    hub: KubeHub, access: Access, scheduler: Any, admitter: Any
) -> None:
    hub.add_user("oda")
    admitter.open.clear()
    try:
        hub.ask_server("oda", gpus=2)
        hub.until(lambda: pods(access, hub, "oda"))
        hub.stop(signal.SIGKILL)
        hub.start()
        hub.until(lambda: scheduler.leases("oda") == [], 40)
        hub.until(lambda: pods(access, hub, "oda") == [], 40)
    finally:
        admitter.open.set()
    hub.ask_server("oda", gpus=2)
    hub.wait_ready("oda")
    (pod,) = pods(access, hub, "oda")
    assert LEASE in pod["metadata"]["labels"]
    hub.stop_server("oda")
    hub.wait_gone("oda")
