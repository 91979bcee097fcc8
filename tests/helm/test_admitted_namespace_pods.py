"""Pods in an admitted namespace get the gate automatically and cannot bypass it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from benchpool_cluster import chart
from benchpool_cluster.chart import Caller, Site
from benchpool_cluster.kwok_nodes import TOLERATION
from benchpool_scheduler.contract import State
from benchpool_scheduler.contract import kubernetes as names
from benchpool_support import replicas
from benchpool_support.replicas import Replica
from benchpool_support.waiting import until

pytestmark = pytest.mark.kubernetes

TEAM = "team-a"
PATIENCE_S = 100
PODS = f"/api/v1/namespaces/{TEAM}/pods"
POLICIES = (
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "Role",
    "RoleBinding",
)
VALUES = {
    "admittedNamespaces": [
        {"name": TEAM, "project": "vision", "user": "susan", "projects": ["speech"]}
    ],
    "policies": {"mutating": "v1beta1"},
}
POOL = """\
version: 1
projects:
  - {name: vision, quota: 2, members: [susan]}
  - {name: speech, quota: 2, members: [susan]}
"""


def pod(name: str, gpus: int = 1, **metadata: Any) -> dict[str, Any]:
    """Return a plain pod."""
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {"name": "main", "image": "any", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [container], "tolerations": [TOLERATION]},
    }


def is_running(one: dict[str, Any]) -> bool:
    """Return whether a pod runs."""
    return bool(one["status"]["phase"] == "Running")


@pytest.fixture(scope="module")
def joe(site: Site) -> Iterator[Caller]:
    """Yield a caller with all RBAC rights in the admitted namespace."""
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}}
    site.access.create("/api/v1/namespaces", made)
    chart.put_rules(site.access, chart.render(VALUES), POLICIES)
    caller = Caller(site.access, "joe-of-team-a", ("system:masters",))

    def holds() -> bool:
        answer = caller.call("POST", f"{PODS}?dryRun=All", pod("probe"))
        refused = caller.call(
            "POST", f"{PODS}?dryRun=All", pod("probe", labels={names.JOB: "x" * 26})
        )
        gates = answer.json().get("spec", {}).get("schedulingGates", [])
        return (bool(gates) and refused.status_code == 422) or refused.status_code == 403

    until(holds)
    yield caller
    for one in chart.render(VALUES).objects:
        if one["kind"] in POLICIES and (
            one["metadata"]["name"].endswith("-admitted")
            or one["metadata"].get("namespace") == TEAM
        ):
            site.access.delete(chart.place(one))
    site.access.delete(f"/api/v1/namespaces/{TEAM}")


def made(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Create a pod that is accepted, and return it."""
    answer = caller.call("POST", PODS, body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def refused(caller: Caller, body: dict[str, Any]) -> str:
    """Try to create a pod and return the reason of the rejection."""
    answer = caller.call("POST", PODS, body)
    assert answer.status_code in (403, 422), answer.text
    return answer.text


def test_gpu_pod_gets_gate_and_role(joe: Caller) -> None:
    found = made(joe, pod("plain"))
    assert found["spec"]["schedulingGates"] == [{"name": names.ADMISSION_GATE}]
    assert found["metadata"]["labels"][names.ROLE] == names.ROLE_ADMITTED


def test_pod_without_gpus_stays_unchanged(joe: Caller) -> None:
    found = made(joe, pod("cpu", gpus=0))
    assert "schedulingGates" not in found["spec"]
    assert names.ROLE not in found["metadata"].get("labels", {})


def test_only_allowed_projects_are_accepted(joe: Caller) -> None:
    made(joe, pod("speech", annotations={names.PROJECT: "speech"}))
    text = refused(joe, pod("chemistry", annotations={names.PROJECT: "chemistry"}))
    assert "may not use project chemistry; an administrator allows: vision, speech." in text


@pytest.mark.parametrize("key", [names.JOB, names.ATTEMPT, names.LEASE])
def test_forged_scheduler_labels_are_rejected(joe: Caller, key: str) -> None:
    assert "[keys]" in refused(joe, pod("forged", labels={key: "x" * 26}))


def test_worker_role_is_rejected_or_replaced(joe: Caller) -> None:
    worker = {names.ROLE: names.ROLE_WORKER}
    assert "[keys]" in refused(joe, pod("forged", gpus=0, labels=worker))
    found = made(joe, pod("corrected", labels=worker))
    assert found["metadata"]["labels"][names.ROLE] == names.ROLE_ADMITTED


def test_pod_with_node_name_is_rejected(joe: Caller) -> None:
    body = pod("bound")
    body["spec"]["nodeName"] = "gpu-1"
    assert "[admitted]" in refused(joe, body)


def test_only_scheduler_opens_gate_and_labels_pod(site: Site, joe: Caller) -> None:
    made(joe, pod("waits"))
    path = f"{PODS}/waits"
    opening: dict[str, Any] = {"spec": {"schedulingGates": []}}
    assert "[gate]" in joe.call("PATCH", path, opening, "merge").text
    marking = {"metadata": {"labels": {names.JOB: "x" * 26}}}
    assert "[keys]" in joe.call("PATCH", path, marking, "merge").text
    scheduler = site.account("scheduler")
    assert scheduler.call("PATCH", path, marking, "merge").is_success
    assert scheduler.call("PATCH", path, opening, "merge").is_success
    assert scheduler.call("DELETE", path).is_success


@pytest.fixture(scope="module")
def scheduler(
    site: Site, joe: Caller, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Replica]:
    """Yield a leading replica with the chart's rights, after removal of earlier pods."""
    assert joe.call("DELETE", PODS).is_success
    account = site.access.service_account(site.rendered.namespace, "benchpool-scheduler")
    own = {
        "BENCHPOOL_RELEASE_NAMESPACE": site.rendered.namespace,
        "BENCHPOOL_ADMITTED_NAMESPACES": json.dumps(VALUES["admittedNamespaces"]),
    }
    with replicas.small_hub() as hub:
        folder = tmp_path_factory.mktemp("scheduler")
        installation = replicas.Site(hub, account.kubeconfig, site.workspace, folder, POOL, own)
        try:
            yield installation.started()
        finally:
            installation.close()


def test_admitted_pods_are_queued_as_project_jobs(
    site: Site, joe: Caller, scheduler: Replica
) -> None:
    made(joe, pod("first", gpus=2))
    site.access.wait(f"{PODS}/first", is_running, PATIENCE_S)
    made(joe, pod("second", gpus=2))

    def has_reason(pod: dict[str, Any]) -> bool:
        reason = pod["metadata"].get("annotations", {}).get(names.REASON, "")
        return "vision" in reason

    site.access.wait(f"{PODS}/second", has_reason, PATIENCE_S)

    def states() -> dict[str, State]:
        return {job.name: job.state for job in scheduler.client("susan").jobs()}

    until(lambda: states() == {"first": State.RUNNING, "second": State.QUEUED})
    jobs = {job.name: job for job in scheduler.client("susan").jobs()}
    assert jobs["first"].tags == ("pods", "pod", TEAM)
    assert (jobs["first"].project, jobs["first"].gpus) == ("vision", 2)
    assert joe.call("DELETE", f"{PODS}/first").is_success
    ran = site.access.wait(f"{PODS}/second", is_running, PATIENCE_S)
    assert names.REASON not in ran["metadata"]["annotations"]
    assert ran["metadata"]["labels"][names.JOB] == jobs["second"].id
