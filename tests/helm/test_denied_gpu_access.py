"""A user with every right in the work namespace gets no GPU past the scheduler.

Each way is tried on a real API server by a user with all RBAC rights in that namespace. Only the
policies can reject it.
"""

from __future__ import annotations

import copy

import pytest

from benchpool_cluster.chart import Caller, Manifest, Site
from benchpool_cluster.doors import (
    GATE,
    GPU,
    RESTRICTED,
    affinity,
    count,
    pod,
    refused,
    second,
)
from benchpool_scheduler.contract import kubernetes as names

pytestmark = pytest.mark.kubernetes


@pytest.fixture(params=["enforced", "absent"])
def standard(site: Site, request: pytest.FixtureRequest) -> str:
    """Set and return the pod security level: enforced, or absent as in older sites."""
    level = "restricted" if request.param == "enforced" else "privileged"
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}
    site.access.patch(f"/api/v1/namespaces/{site.workspace}", label)
    return level


MIG = "nvidia.com/mig-1g.10gb"
CLAIMS: Manifest = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}

UNGATED: dict[str, Manifest] = {
    "a limit": pod(resources=GPU),
    "a request and limit": pod(
        resources={"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}
    ),
    "a MIG slice": pod(resources={"limits": {MIG: "1"}}),
    "a shared GPU": pod(resources={"limits": {"nvidia.com/gpu.shared": "1"}}),
    "an init container": pod({"initContainers": second(resources=GPU)}),
    "a sidecar": pod({"initContainers": second(resources=GPU, restartPolicy="Always")}),
    "a second container": pod(
        {"containers": [*pod()["spec"]["containers"], *second(resources=GPU)]}
    ),
    "a device claim": pod(CLAIMS),
    "a claim of a container": pod(CLAIMS, resources={"claims": [{"name": "gpu"}]}),
    "somebody else's gate": pod({"schedulingGates": [{"name": "example.org/mine"}]}, resources=GPU),
}


@pytest.mark.parametrize("door", UNGATED)
def test_gpu_pod_without_gate_is_rejected(mallory: Caller, pods: str, door: str) -> None:
    refused(mallory.call("POST", pods, UNGATED[door]), "gated")


@pytest.mark.parametrize("door", UNGATED)
def test_gated_pod_of_user_is_rejected(mallory: Caller, pods: str, door: str) -> None:
    gated = copy.deepcopy(UNGATED[door])
    gated["spec"]["schedulingGates"] = GATE
    refused(mallory.call("POST", pods, gated), "made-by")


AT_CREATION: dict[str, tuple[str, Manifest]] = {
    "its node by name": ("node-name", pod({"nodeName": "gpu-1"})),
    "all devices by environment": (
        "visible-devices",
        pod(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]),
    ),
    "devices by environment of an init container": (
        "visible-devices",
        pod({"initContainers": second(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "0"}])}),
    ),
    "devices by a variable of a field": (
        "visible-devices",
        pod(
            env=[
                {
                    "name": "NVIDIA_VISIBLE_DEVICES",
                    "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['devices']"}},
                }
            ]
        ),
    ),
    "devices by mounts": (
        "device-mounts",
        pod(
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            volumeMounts=[{"name": "v", "mountPath": "/var/run/nvidia-container-devices/all"}],
        ),
    ),
    "a GPU runtime": ("runtime-class", pod({"runtimeClassName": "nvidia"})),
    "devices by annotation": ("cdi", pod(annotations={"cdi.k8s.io/any": "nvidia.com/gpu=all"})),
    "a label of ours": ("keys", pod(labels={names.ROLE: names.ROLE_WORKER})),
    "the label of a job": ("keys", pod(labels={names.JOB: "01hzxk8qj9v4e2c5t7m3n6p8ra"})),
    "an annotation of ours": ("keys", pod(annotations={names.SLOTS: "gpu-1/0"})),
}

PAST_THE_STANDARD: dict[str, tuple[str, Manifest]] = {
    "device files of the host": (
        "host-path",
        pod({"volumes": [{"name": "dev", "hostPath": {"path": "/dev"}}]}),
    ),
    "privilege": ("privileged", pod(securityContext={"privileged": True})),
    "privilege of an init container": (
        "privileged",
        pod({"initContainers": second(securityContext={"privileged": True})}),
    ),
    "making device files": (
        "privileged",
        pod(securityContext={"capabilities": {"add": ["MKNOD"]}}),
    ),
    "the host's network": ("host-namespaces", pod({"hostNetwork": True})),
    "the host's processes": ("host-namespaces", pod({"hostPID": True})),
    "the host's memory": ("host-namespaces", pod({"hostIPC": True})),
}


@pytest.fixture(scope="module")
def runtime_class(site: Site) -> None:
    about = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "nvidia"}
    site.access.apply(
        "/apis/node.k8s.io/v1/runtimeclasses/nvidia", about | {"metadata": {"name": "nvidia"}}
    )


@pytest.mark.usefixtures("runtime_class", "standard")
@pytest.mark.parametrize("door", AT_CREATION)
def test_pod_reaching_gpus_without_request_is_rejected(
    mallory: Caller, pods: str, door: str
) -> None:
    rule, manifest = AT_CREATION[door]
    refused(mallory.call("POST", pods, manifest), rule)


@pytest.mark.parametrize("door", PAST_THE_STANDARD)
def test_host_access_is_rejected_without_pod_security(
    site: Site, mallory: Caller, pods: str, door: str
) -> None:
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
    site.access.patch(f"/api/v1/namespaces/{site.workspace}", label)
    rule, manifest = PAST_THE_STANDARD[door]
    refused(mallory.call("POST", pods, manifest), rule)


def test_variable_hiding_gpus_is_accepted(mallory: Caller, pods: str) -> None:
    hidden = pod(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}])
    answer = mallory.call("POST", pods, hidden)
    assert answer.status_code == 201, answer.text


def test_pod_without_gpus_is_accepted(mallory: Caller, pods: str) -> None:
    plain = pod(
        {"affinity": {"nodeAffinity": affinity("gpu-1")}},
        labels={"example.org/role": "worker"},
        resources={"limits": {"cpu": "1", "nvidia.com/gpu": "0"}},
    )
    answer = mallory.call("POST", pods, plain)
    assert answer.status_code == 201, answer.text


@pytest.mark.usefixtures("standard")
@pytest.mark.parametrize("privileged", [False, True])
def test_ephemeral_container_is_rejected(mallory: Caller, pods: str, privileged: bool) -> None:
    running = pod()
    assert mallory.call("POST", pods, running).status_code == 201
    context = {"privileged": True} if privileged else RESTRICTED
    debugger = {"name": "debugger", "image": "work", "securityContext": context}
    path = f"{pods}/{running['metadata']['name']}/ephemeralcontainers"
    answer = mallory.call("PATCH", path, {"spec": {"ephemeralContainers": [debugger]}}, "merge")
    if not (privileged and "violates PodSecurity" in answer.text):  # whichever check runs first
        refused(answer, "ephemeral")


WORKLOADS = {
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "ReplicationController": "/api/v1/namespaces/{}/replicationcontrollers",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "CronJob": "/apis/batch/v1/namespaces/{}/cronjobs",
}


def workload(kind: str, template: Manifest) -> Manifest:
    """Return a workload that creates pods from a template."""
    inside = {"metadata": template["metadata"] | {"name": ""}, "spec": template["spec"]}
    group = WORKLOADS[kind].split("/")
    spec: Manifest = {"template": inside}
    if kind == "CronJob":
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": inside}}}
    elif kind != "Job":
        inside["spec"] = inside["spec"] | {"restartPolicy": "Always"}
        inside["metadata"]["labels"] = inside["metadata"]["labels"] | {"app": "x"}
        spec["selector"] = (
            {"app": "x"} if kind == "ReplicationController" else {"matchLabels": {"app": "x"}}
        )
    if kind == "StatefulSet":
        spec["serviceName"] = "x"
    return {
        "apiVersion": "v1" if group[1] == "api" else f"{group[2]}/v1",
        "kind": kind,
        "metadata": {"name": f"work-{next(count)}"},
        "spec": spec,
    }


@pytest.mark.parametrize("kind", WORKLOADS)
def test_gpu_workload_is_rejected(site: Site, mallory: Caller, kind: str) -> None:
    path = WORKLOADS[kind].format(site.workspace)
    gated = pod({"schedulingGates": GATE}, resources=GPU)
    refused(mallory.call("POST", path, workload(kind, gated)), "workload")


@pytest.mark.parametrize("kind", WORKLOADS)
def test_workload_with_forged_labels_is_rejected(site: Site, mallory: Caller, kind: str) -> None:
    path = WORKLOADS[kind].format(site.workspace)
    forged = pod(labels={names.ROLE: names.ROLE_WORKER, names.JOB: "x"})
    refused(mallory.call("POST", path, workload(kind, forged)), "keys")


@pytest.mark.parametrize("kind", WORKLOADS)
def test_workload_without_gpus_is_accepted(site: Site, mallory: Caller, kind: str) -> None:
    path = WORKLOADS[kind].format(site.workspace)
    plain = workload(kind, pod())
    answer = mallory.call("POST", path, plain)
    assert answer.status_code == 201, answer.text
    site.access.delete(f"{path}/{plain['metadata']['name']}")


def test_workload_change_requesting_gpus_is_rejected(site: Site, mallory: Caller) -> None:
    path = WORKLOADS["Deployment"].format(site.workspace)
    plain = workload("Deployment", pod())
    plain["spec"]["replicas"] = 0
    assert mallory.call("POST", path, plain).status_code == 201
    asks = {"name": "main", "resources": GPU}
    patch = {"spec": {"template": {"spec": {"containers": [asks | {"image": "work"}]}}}}
    here = f"{path}/{plain['metadata']['name']}"
    refused(mallory.call("PATCH", here, patch, "merge"), "workload")
    site.access.delete(here)


@pytest.mark.parametrize(
    "controller",
    ["replicaset-controller", "statefulset-controller", "daemon-set-controller", "job-controller"],
)
def test_gpu_pod_of_foreign_controller_is_rejected(site: Site, pods: str, controller: str) -> None:
    forged = pod({"schedulingGates": GATE}, labels={names.JOB: "x"}, resources=GPU)
    forged["metadata"]["labels"][names.ROLE] = names.ROLE_WORKER
    answer = site.controller(controller).call("POST", pods, forged)
    assert answer.status_code == 403
    assert "benchpool [made-by]" in answer.text or "benchpool [keys]" in answer.text


def test_worker_pod_of_hub_is_rejected(site: Site, pods: str) -> None:
    labels = {names.ROLE: names.ROLE_WORKER, names.JOB: "x", names.LEASE: "l"}
    worker = pod({"schedulingGates": GATE}, labels=labels, resources=GPU)
    refused(site.account("hub").call("POST", pods, worker), "made-by")


def test_hub_gpu_pod_without_lease_is_rejected(site: Site, pods: str) -> None:
    labels = {names.ROLE: names.ROLE_NOTEBOOK}
    notebook = pod({"schedulingGates": GATE}, labels=labels, resources=GPU)
    refused(site.account("hub").call("POST", pods, notebook), "made-by")


def test_namespace_label_change_is_rejected(site: Site, mallory: Caller) -> None:
    path = f"/api/v1/namespaces/{site.workspace}"
    for value in (None, "false"):
        patch = {"metadata": {"labels": {names.MANAGED: value}}}
        refused(mallory.call("PATCH", path, patch, "merge"), "managed")
