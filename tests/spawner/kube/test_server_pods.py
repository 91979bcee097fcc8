"""Servers as pods under a real Hub: their GPUs are leased, gated and released."""

from __future__ import annotations

from typing import Any

import pytest

from benchpool_cluster.access import Access
from benchpool_scheduler.contract.kubernetes import (
    GPU_RESOURCE,
    LEASE,
    ROLE,
    USER,
)
from benchpool_support.kube_hub import KubeHub

pytestmark = pytest.mark.kubernetes


def pods(access: Access, hub: KubeHub) -> dict[str, dict[str, Any]]:
    """Return the Hub's pods by user."""
    found = access.get(f"/api/v1/namespaces/{hub.namespace}/pods")["items"]
    return {pod["metadata"]["annotations"]["hub.jupyter.org/username"]: pod for pod in found}


def notebook(pod: dict[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = pod["spec"]["containers"][0]
    return container


def env(pod: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in notebook(pod)["env"]}


def test_gpu_server_holds_lease_until_stop(
    hub: KubeHub, access: Access, scheduler: Any, admitter: Any
) -> None:
    hub.add_user("susan")
    admitter.open.clear()  # so that the progress can be read before the server is ready
    assert hub.ask_server("susan", gpus=2).status_code == 202
    progress = hub.progress("susan")
    steps = [next(progress)]
    admitter.open.set()
    steps += progress
    assert steps[-1]["ready"]
    messages = " | ".join(step["message"] for step in steps)
    for words in ("Asking the scheduler for 2 GPUs", "Reserved 2 GPUs: gpu-", "The pod is created"):
        assert words in messages
    hub.wait_ready("susan")
    pod = pods(access, hub)["susan"]
    (gpus,) = scheduler.leases("susan")
    assert notebook(pod)["resources"]["limits"][GPU_RESOURCE] == "2"
    assert pod["metadata"]["labels"][ROLE] == "notebook"
    assert len(pod["metadata"]["labels"][LEASE]) == 26
    assert pod["metadata"]["annotations"][USER] == "susan"
    assert pod["spec"]["nodeName"] == gpus[0].split("/")[0]
    assert "CUDA_VISIBLE_DEVICES" not in env(pod)
    hub.stop_server("susan")
    hub.wait_gone("susan")
    hub.until(lambda: scheduler.leases("susan") == [])
    assert "susan" not in pods(access, hub)


def test_server_without_gpus_has_no_gate(hub: KubeHub, access: Access, scheduler: Any) -> None:
    hub.add_user("joe")
    hub.ask_server("joe")
    hub.wait_ready("joe")
    pod = pods(access, hub)["joe"]
    assert "schedulingGates" not in pod["spec"]
    assert LEASE not in pod["metadata"]["labels"]
    assert env(pod)["CUDA_VISIBLE_DEVICES"] == ""
    assert "NVIDIA_VISIBLE_DEVICES" not in env(pod)
    assert scheduler.leases("joe") == []
    hub.stop_server("joe")
    hub.wait_gone("joe")
