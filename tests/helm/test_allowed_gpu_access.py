"""The policies accept the work of Hub, scheduler and cluster controllers, end to end."""

from __future__ import annotations

from typing import Any

import pytest

from benchpool_cluster import kwok_nodes
from benchpool_cluster.chart import Caller, Manifest, Site
from benchpool_cluster.doors import refused
from benchpool_scheduler.contract import kubernetes as names

pytestmark = pytest.mark.kubernetes

JOB = "01hzxk8qj9v4e2c5t7m3n6p8ra"
GATE = [{"name": names.ADMISSION_GATE}]


def spec(**more: Any) -> Manifest:
    """Return the spec of a gated pod with one GPU that meets the restricted standard."""
    container = {
        "name": "main",
        "image": "work",
        "resources": {"limits": {names.GPU_RESOURCE: "1"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "containers": [container],
        "schedulingGates": GATE,
        "restartPolicy": "Never",
        "tolerations": [kwok_nodes.TOLERATION],
    } | more


def pin(node: str) -> list[Manifest]:
    """Return the scheduler's patch that pins a pod to this node and opens the gate."""
    slots = names.SLOTS.replace("/", "~1")
    requirement = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [requirement]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return [
        {"op": "add", "path": "/spec/affinity", "value": affinity},
        {"op": "add", "path": f"/metadata/annotations/{slots}", "value": f"{node}/0"},
        {"op": "remove", "path": "/spec/schedulingGates"},
    ]


def done(answer: Any) -> Manifest:
    """Return the object of a successful answer."""
    assert answer.is_success, answer.text
    found: Manifest = answer.json()
    return found


@pytest.fixture(scope="module")
def scheduler(site: Site) -> Caller:
    return site.account("scheduler")


@pytest.fixture(scope="module")
def pods(site: Site) -> str:
    return f"/api/v1/namespaces/{site.workspace}/pods"


def is_running(pod: Manifest) -> bool:
    return bool(pod["status"].get("phase") == "Running")


def job_of(attempt: int, **more: Any) -> Manifest:
    """Return the Job of an attempt with two workers, as the scheduler creates it."""
    name = names.attempt_name(JOB, attempt)
    labels = {names.ROLE: names.ROLE_WORKER, names.JOB: JOB, names.ATTEMPT: str(attempt)}
    template = {"metadata": {"labels": labels}, "spec": spec(subdomain=name)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": {names.EPOCH: "1"}},
        "spec": {
            "completionMode": "Indexed",
            "completions": 2,
            "parallelism": 2,
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "template": template,
        }
        | more,
    }


def workers(site: Site, pods: str, attempt: int) -> list[str]:
    """Return the names of an attempt's pods."""
    query = f"{pods}?labelSelector={names.JOB}={JOB},{names.ATTEMPT}={attempt}"
    return [pod["metadata"]["name"] for pod in site.access.get(query)["items"]]


@pytest.fixture(scope="module")
def jobs(site: Site) -> str:
    return f"/apis/batch/v1/namespaces/{site.workspace}/jobs"


def test_gang_is_created_pinned_run_and_deleted(
    site: Site, scheduler: Caller, pods: str, jobs: str
) -> None:
    here = f"{jobs}/{names.attempt_name(JOB, 1)}"
    done(scheduler.call("POST", jobs, job_of(1)))
    site.access.wait(here, lambda job: job["status"].get("active") == 2)
    found = workers(site, pods, 1)
    nodes = dict(zip(found, ("gpu-1", "gpu-2"), strict=True))
    for pod, node in nodes.items():
        done(scheduler.call("PATCH", f"{pods}/{pod}", pin(node), "json"))
    # kwok completes pods of Jobs as soon as they run
    site.access.wait(here, lambda job: job["status"].get("succeeded") == 2)
    for pod, node in nodes.items():
        assert site.access.get(f"{pods}/{pod}")["spec"]["nodeName"] == node
    done(scheduler.call("DELETE", here, {"propagationPolicy": "Foreground"}))
    site.access.wait_gone(here)


def test_gang_is_suspended_and_resumed(site: Site, scheduler: Caller, pods: str, jobs: str) -> None:
    here = f"{jobs}/{names.attempt_name(JOB, 2)}"
    done(scheduler.call("POST", jobs, job_of(2)))
    site.access.wait(here, lambda job: job["status"].get("active") == 2)
    first = workers(site, pods, 2)
    done(scheduler.call("PATCH", here, {"spec": {"suspend": True}}, "merge"))
    for pod in first:
        site.access.wait_gone(f"{pods}/{pod}")
    done(scheduler.call("PATCH", here, {"spec": {"suspend": False}}, "merge"))
    site.access.wait(here, lambda job: job["status"].get("active") == 2)
    assert not set(first) & set(workers(site, pods, 2))
    done(scheduler.call("DELETE", here, {"propagationPolicy": "Foreground"}))
    site.access.wait_gone(here)


def test_worker_in_pod_group_is_accepted(
    site: Site, scheduler: Caller, jobs: str, pods: str
) -> None:
    """Create a pod as the Job controller does with gang support.

    This API server drops the new fields.
    """
    about = job_of(9, suspend=True, scheduling={"disruptionMode": {"all": {}}})
    job = done(scheduler.call("POST", jobs, about))
    name, template = job["metadata"]["name"], about["spec"]["template"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}
    group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": f"{name}-g"}
    owners = [owner | {"controller": True}, group | {"uid": "7e6c1f0e-0000-4000-8000-000000000000"}]
    labels = template["metadata"]["labels"] | {"batch.kubernetes.io/job-name": name}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-0-abcde", "labels": labels, "ownerReferences": owners},
        "spec": template["spec"] | {"schedulingGroup": {"podGroupName": f"{name}-g"}},
    }
    made = done(site.controller("job-controller").call("POST", pods, pod))
    assert made["spec"]["schedulingGates"] == GATE
    assert done(scheduler.call("DELETE", f"{jobs}/{name}"))


def test_change_of_scheduler_job_by_user_is_rejected(
    site: Site, scheduler: Caller, jobs: str
) -> None:
    here = f"{jobs}/{names.attempt_name(JOB, 7)}"
    done(scheduler.call("POST", jobs, job_of(7, suspend=True)))
    mallory = site.person("mallory", "cluster-admin")
    for change in ({"suspend": False}, {"parallelism": 9, "completions": 9}):
        answer = mallory.call("PATCH", here, {"spec": change}, "merge")
        refused(answer, "change", "workload")
    forged = {"metadata": {"labels": {names.ATTEMPT: "8"}}}
    answer = mallory.call("PATCH", here, forged, "merge")
    refused(answer, "change", "keys")
    site.access.delete(here)


def test_hub_creates_pinned_notebook_and_deletes_it(
    site: Site, scheduler: Caller, pods: str
) -> None:
    hub = site.account("hub")
    labels = {names.ROLE: names.ROLE_NOTEBOOK, names.LEASE: "lease-1", "hub.jupyter.org/x": "y"}
    about = {"name": "jupyter-susan", "labels": labels, "annotations": {names.USER: "susan"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec()}
    done(hub.call("POST", pods, pod))
    done(scheduler.call("PATCH", f"{pods}/jupyter-susan", pin("gpu-1"), "json"))
    site.access.wait(f"{pods}/jupyter-susan", is_running)
    done(hub.call("DELETE", f"{pods}/jupyter-susan?gracePeriodSeconds=0"))
    site.access.wait_gone(f"{pods}/jupyter-susan")


def test_notebook_without_gpus_needs_no_gate_or_lease(site: Site, pods: str) -> None:
    hub = site.account("hub")
    labels = {names.ROLE: names.ROLE_NOTEBOOK, "component": "singleuser-server"}
    plain = spec(schedulingGates=[])
    del plain["containers"][0]["resources"]
    about = {"name": "jupyter-joe", "labels": labels}
    done(
        hub.call(
            "POST", pods, {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": plain}
        )
    )
    site.access.wait(f"{pods}/jupyter-joe", is_running)
    done(hub.call("DELETE", f"{pods}/jupyter-joe?gracePeriodSeconds=0"))


def test_gpu_pods_in_unmanaged_namespaces_are_accepted(site: Site) -> None:
    site.access.apply(
        "/api/v1/namespaces/elsewhere",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}},
    )
    foreign = spec(schedulingGates=[])
    about = {"name": "foreign"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": foreign}
    site.person("mallory", "cluster-admin")
    site.access.wait("/api/v1/namespaces/elsewhere/serviceaccounts/default", lambda _: True)
    done(site.access.call("POST", "/api/v1/namespaces/elsewhere/pods", pod))


def test_policies_have_no_type_warnings(site: Site) -> None:
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    for one in site.rendered.of("ValidatingAdmissionPolicy"):
        seen = site.access.wait(
            f"{policies}/{one['metadata']['name']}",
            lambda policy: "typeChecking" in policy["status"],
        )
        assert not seen["status"]["typeChecking"].get("expressionWarnings"), seen["status"]
