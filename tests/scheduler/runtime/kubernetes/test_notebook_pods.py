"""Notebook pods wait behind the admission gate for the GPUs of their lease."""

from __future__ import annotations

from typing import Any

import pytest

from benchpool_cluster.control_plane import ControlPlane
from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.kube import kinds
from benchpool_support.pods import KWOK, Stand

pytestmark = pytest.mark.kubernetes
LEASE = "01hzxk8qj9v4e2c5t7m3n6p8ra"
ZONE = {"key": "type", "operator": "In", "values": ["kwok"]}


def notebook(**metadata: Any) -> dict[str, Any]:
    """Return a notebook pod as a spawner creates it, with its own affinity."""
    terms = [{"matchExpressions": [ZONE]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    confined = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {
        "name": "notebook",
        "image": "any",
        "securityContext": confined,
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    labels = {names.ROLE: names.ROLE_NOTEBOOK, names.LEASE: LEASE}
    return {
        "metadata": {"name": "jupyter-susan", "labels": labels, **metadata},
        "spec": {
            "schedulingGates": [{"name": "other"}, {"name": names.ADMISSION_GATE}],
            "affinity": {"nodeAffinity": required},
            "containers": [container],
            "tolerations": [KWOK],
        },
    }


@pytest.mark.parametrize("metadata", [{}, {"annotations": {"hub": "susan"}}])
async def test_notebook_starts_on_node_of_its_lease(stand: Stand, metadata: dict[str, Any]) -> None:
    node, space = stand.nodes[1], stand.settings.namespace
    await stand.runtime.hold(LEASE, (f"{node}/2",))
    await stand.connection.create(kinds.PODS, notebook(**metadata), namespace=space)
    pod = await stand.until_pod("jupyter-susan", lambda it: len(_gates(it)) == 1)
    assert _gates(pod) == ["other"]
    assert pod["metadata"]["annotations"][names.SLOTS] == f"{node}/2"
    (term,) = pod["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [ZONE]
    assert term["matchFields"][0]["values"] == [node]


async def test_later_lease_opens_waiting_notebook_pod(stand: Stand) -> None:
    node, space = stand.nodes[0], stand.settings.namespace
    body = notebook()
    body["spec"]["schedulingGates"] = [{"name": names.ADMISSION_GATE}]
    await stand.connection.create(kinds.PODS, body, namespace=space)
    await stand.until_seen("jupyter-susan")
    await stand.runtime.hold(LEASE, (f"{node}/0",))
    pod = await stand.until_pod("jupyter-susan", lambda it: it["status"]["phase"] == "Running")
    assert pod["spec"]["nodeName"] == node
    # kube-scheduler and kubelet have written since, but the API server keeps no managed fields.
    assert not pod["metadata"].get("managedFields")
    stand.runtime.release(LEASE)
    await stand.until_devices("uuuf" + "uuuuuuuu")
    await stand.connection.delete(kinds.PODS, "jupyter-susan", namespace=space)
    await stand.until_devices("u" * 12)


async def test_modified_pod_is_opened_once(
    stand: Stand,
) -> None:
    node, space = stand.nodes[0], stand.settings.namespace
    await stand.connection.create(kinds.PODS, notebook(), namespace=space)
    await stand.until_seen("jupyter-susan")
    (seen,) = (pod for pod in stand.runtime.seen_pods if pod.namespace == space)
    label = {"metadata": {"labels": {"written": "meanwhile"}}}
    await stand.connection.patch(kinds.PODS, seen.name, label, namespace=space)
    assert await stand.runtime.job_writer.open(seen, node, (f"{node}/0",))
    assert not await stand.runtime.job_writer.open(seen, stand.nodes[1], (f"{stand.nodes[1]}/0",))
    pod = await stand.until_pod("jupyter-susan", lambda it: len(_gates(it)) == 1)
    assert pod["metadata"]["annotations"][names.SLOTS] == f"{node}/0"


async def test_node_failing_to_run_notebook_is_blocked_temporarily(
    stand: Stand, plane: ControlPlane
) -> None:
    node, space = stand.nodes[0], stand.settings.namespace
    body = notebook()
    body["spec"]["schedulingGates"] = [{"name": names.ADMISSION_GATE}]
    body["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1000"
    await stand.connection.create(kinds.PODS, body, namespace=space)
    await stand.runtime.hold(LEASE, (f"{node}/0",))
    devices = await stand.until_devices("ubbb" + "uuuuuuuu")
    assert "jupyter-susan" in str(devices[1].note)
    assert "Insufficient cpu" in str(devices[1].note)


def _gates(pod: dict[str, Any]) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", ())]
