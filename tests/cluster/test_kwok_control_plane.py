"""A control plane with nodes that have no machine."""

from __future__ import annotations

import pytest

from benchpool_cluster import kwok_nodes
from benchpool_cluster.control_plane import ControlPlane
from benchpool_support.waiting import stays

pytestmark = pytest.mark.kubernetes
PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, *, gpus: int, gate: str = "") -> dict[str, object]:
    container = {
        "name": "main",
        "image": "nothing",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    spec = {
        "containers": [container],
        "tolerations": [kwok_nodes.TOLERATION],
        "schedulingGates": [{"name": gate}] if gate else [],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_gated_pod_runs_on_kwok_node_after_gate_removal(control_plane: ControlPlane) -> None:
    access = control_plane.access
    kwok_nodes.add(access, "fake-1", gpus=8)
    kwok_nodes.wait_ready(access, "fake-1")
    access.create(PODS, pod("gated", gpus=2, gate="benchpool.io/admission"))
    access.create(PODS, pod("free", gpus=1))
    access.wait(f"{PODS}/free", lambda seen: seen["status"]["phase"] == "Running")
    assert access.get(f"{PODS}/gated")["spec"].get("nodeName") is None
    access.patch(f"{PODS}/gated", [{"op": "remove", "path": "/spec/schedulingGates"}], "json")
    running = access.wait(f"{PODS}/gated", lambda seen: seen["status"]["phase"] == "Running")
    assert running["spec"]["nodeName"] == "fake-1"
    access.delete(f"{PODS}/gated")
    access.delete(f"{PODS}/free")
    kwok_nodes.remove(access, "fake-1")


def test_service_account_kubeconfig_has_its_rights(
    control_plane: ControlPlane,
) -> None:
    reader = control_plane.access.service_account("default", "reader", cluster_role="view")
    assert reader.kubeconfig.exists()
    assert reader.get(PODS)["kind"] == "PodList"
    assert reader.call("POST", PODS, pod("not-allowed", gpus=1)).status_code == 403


def test_killed_api_server_restarts_with_its_objects(control_plane: ControlPlane) -> None:
    access = control_plane.access
    mark = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mark"}}
    access.create("/api/v1/namespaces/default/configmaps", mark)
    control_plane.processes.kill("kube-apiserver")
    control_plane.restart("kube-apiserver")
    assert access.find("/api/v1/namespaces/default/configmaps/mark")


def test_frozen_controller_manager_does_nothing(
    control_plane: ControlPlane,
) -> None:
    access = control_plane.access
    control_plane.processes.freeze("kube-controller-manager")
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "late"}}
    access.create("/api/v1/namespaces", space)
    account = "/api/v1/namespaces/late/serviceaccounts/default"
    stays(lambda: access.find(account) is None, 1)
    control_plane.processes.thaw("kube-controller-manager")
    access.wait(account, bool)
