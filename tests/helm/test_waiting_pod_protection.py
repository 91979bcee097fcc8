"""Only the scheduler opens the gate of a waiting pod, pins the pod and changes it."""

from __future__ import annotations

import pytest

from benchpool_cluster.chart import Caller, Site
from benchpool_cluster.doors import GATE, GPU, affinity, pod, refused
from benchpool_scheduler.contract import kubernetes as names

pytestmark = pytest.mark.kubernetes


@pytest.fixture
def waiting(site: Site, pods: str) -> str:
    """Return the path of a notebook's pod that waits behind the gate."""
    notebook = pod(
        {"schedulingGates": GATE},
        labels={names.ROLE: names.ROLE_NOTEBOOK, names.LEASE: "lease-1"},
        resources=GPU,
    )
    answer = site.account("hub").call("POST", pods, notebook)
    assert answer.status_code == 201, answer.text
    return f"{pods}/{notebook['metadata']['name']}"


OPEN_GATE = [{"op": "remove", "path": "/spec/schedulingGates"}]
PIN = [{"op": "add", "path": "/spec/nodeSelector", "value": {"kubernetes.io/hostname": "gpu-1"}}]
PIN_BY_NAME = [{"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": affinity("x")}}]


@pytest.mark.parametrize("who", ["mallory", "hub", "job-controller"])
@pytest.mark.parametrize(
    ("patch", "rule"),
    [(OPEN_GATE, "gate"), (PIN, "pin"), (PIN_BY_NAME, "pin"), (OPEN_GATE + PIN, "gate")],
)
def test_gate_change_by_another_account_is_rejected(
    site: Site, mallory: Caller, waiting: str, who: str, patch: object, rule: str
) -> None:
    site.person("mallory", "cluster-admin")
    caller = {
        "mallory": mallory,
        "hub": _with_every_right(site, site.account("hub")),
        "job-controller": _with_every_right(site, site.controller("job-controller")),
    }[who]
    rules = [rule, "change"] if who == "mallory" else [rule]
    refused(caller.call("PATCH", waiting, patch, "json"), *rules)


def _with_every_right(site: Site, caller: Caller) -> Caller:
    """Return the caller with all RBAC rights in the namespace, so that only policies can reject."""
    group = ("forced",)
    site.access.apply(
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{site.workspace}/rolebindings/forced",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "forced"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [
                {"kind": "Group", "name": "forced", "apiGroup": "rbac.authorization.k8s.io"}
            ],
        },
    )
    return Caller(caller.access, caller.user, (*caller.groups, *group))


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"labels": {names.LEASE: "lease-2"}}},
        {"metadata": {"labels": {names.LEASE: None}}},
        {"metadata": {"labels": {names.ROLE: names.ROLE_WORKER}}},
        {"metadata": {"annotations": {names.SLOTS: "gpu-1/3"}}},
    ],
)
def test_change_of_identifying_labels_is_rejected(
    mallory: Caller, waiting: str, patch: object
) -> None:
    refused(mallory.call("PATCH", waiting, patch, "merge"), "keys", "change")


def test_device_annotation_added_later_is_rejected(mallory: Caller, waiting: str) -> None:
    patch = {"metadata": {"annotations": {"cdi.k8s.io/any": "nvidia.com/gpu=all"}}}
    refused(mallory.call("PATCH", waiting, patch, "merge"), "cdi", "change")


def test_manual_binding_of_gated_pod_is_rejected(site: Site, mallory: Caller, waiting: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": "gpu-1"}
    name = waiting.rpartition("/")[2]
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    assert mallory.call("POST", f"{waiting}/binding", binding).status_code == 409
