"""Editors of the work namespace cannot touch objects of other users or of benchpool.

Each request is sent twice to a real API server that holds another user's notebook and gang. The
first sender is a user with the role `edit`; the second has all RBAC rights in that namespace, so
that only the policies can reject the request. Afterwards all objects are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from benchpool_cluster.chart import Caller, Manifest, Site
from benchpool_cluster.doors import GATE, GPU, affinity, pod, refused
from benchpool_cluster.requests import filled
from benchpool_cluster.side_doors import BY_RIGHT, REQUESTS
from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.runtime.kubernetes import manifests

pytestmark = pytest.mark.kubernetes

JOB = "01hzxk8qj9v4e2c5t7m3n6p8ra"
ATTEMPT = names.attempt_name(JOB, 8)
OURS = {names.ROLE: names.ROLE_WORKER, names.JOB: JOB, names.ATTEMPT: "8"}
HOME = "home-susan"


def test_table_has_at_least_88_requests() -> None:
    assert len(REQUESTS) >= 88


@pytest.fixture(scope="module")
def standing(site: Site) -> Iterator[Mapping[str, str]]:
    """Yield susan's GPU notebook, home and gang of two workers, created by their real accounts."""
    space = {"space": site.workspace}
    scheduler, hub = site.account("scheduler"), site.account("hub")

    def made(by: Caller, path: str, body: Manifest) -> Manifest:
        answer = by.call("POST", path.format(**space), body)
        assert answer.is_success, answer.text
        done: Manifest = answer.json()
        return done

    _classes(site)
    template = {"metadata": {"labels": OURS}, "spec": gang_spec()}
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": template}
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}
    jobs = "/apis/batch/v1/namespaces/{space}/jobs"
    uid = made(scheduler, jobs, job | {"metadata": about()})["metadata"]["uid"]
    owned = about(ownerReferences=manifests.owned_by(ATTEMPT, uid))
    core = "/api/v1/namespaces/{space}/"
    made(scheduler, core + "secrets", {"metadata": owned, "data": {"token-0": "eA=="}})
    chosen = {"batch.kubernetes.io/job-name": ATTEMPT}
    service = {"clusterIP": "None", "selector": chosen}
    made(scheduler, core + "services", {"metadata": owned, "spec": service})
    policy = {"podSelector": {"matchLabels": chosen}, "policyTypes": ["Ingress"]}
    path = "/apis/networking.k8s.io/v1/namespaces/{space}/networkpolicies"
    made(scheduler, path, {"metadata": owned, "spec": policy})
    path = f"/apis/{names.API_VERSION}/namespaces/{{space}}/trainingjobs"
    training = {"apiVersion": names.API_VERSION, "kind": "TrainingJob"}
    job_spec = {"user": "susan", "project": "susan", "command": ["train"]}
    made(scheduler, path, training | {"metadata": {"name": "susans"}, "spec": job_spec})
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    whose = {"name": HOME, "annotations": {"hub.jupyter.org/username": "susan"}}
    made(hub, core + "persistentvolumeclaims", {"metadata": whose, "spec": size})
    made(hub, core + "pods", notebook())
    pods = f"/api/v1/namespaces/{site.workspace}/pods"
    site.access.wait(
        f"{jobs}/{ATTEMPT}".format(**space), lambda it: it["status"].get("active") == 2
    )
    found = site.access.get(f"{pods}?labelSelector={names.JOB}={JOB},{names.ATTEMPT}=8")["items"]
    done = scheduler.call("PATCH", f"{pods}/jupyter-susan", PIN, "json")
    assert done.is_success, done.text
    site.access.wait(f"{pods}/jupyter-susan", lambda it: it["status"].get("phase") == "Running")
    yield space | {
        "worker": found[0]["metadata"]["name"],
        "notebook": "jupyter-susan",
        "attempt": ATTEMPT,
        "home": HOME,
        "uid": uid,
    }
    site.access.delete(f"{jobs}/{ATTEMPT}?propagationPolicy=Background".format(**space))
    site.access.delete(f"{pods}/jupyter-susan", 0)
    site.access.delete(f"{path}/susans".format(**space))


PIN = [
    {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": affinity("gpu-1")}},
    {"op": "remove", "path": "/spec/schedulingGates"},
]


def about(**more: Any) -> Manifest:
    return {"name": ATTEMPT, "labels": OURS, "annotations": {names.EPOCH: "1"}} | more


def gang_spec() -> Manifest:
    spec: Manifest = pod({"schedulingGates": GATE, "subdomain": ATTEMPT}, resources=GPU)["spec"]
    return spec


def notebook() -> Manifest:
    labels = {names.ROLE: names.ROLE_NOTEBOOK, names.LEASE: "l", "component": "singleuser-server"}
    bears = {"key": "kwok.x-k8s.io/node", "operator": "Exists"}
    made = pod({"schedulingGates": GATE, "tolerations": [bears]}, labels=labels, resources=GPU)
    made["metadata"]["name"] = "jupyter-susan"
    return made


def _classes(site: Site) -> None:
    """Create a priority class above all others and a runtime class without GPUs in its name."""
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1_000_000}
    path = "/apis/scheduling.k8s.io/v1/priorityclasses/high"
    site.access.apply(path, high | {"metadata": {"name": "high"}})
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "gpu"}
    path = "/apis/node.k8s.io/v1/runtimeclasses/gpu"
    site.access.apply(path, runtime | {"metadata": {"name": "gpu"}})


@pytest.fixture(scope="module")
def eddy(site: Site) -> Caller:
    """Return a caller with the role that an administrator may grant."""
    return site.person("eddy", "edit")


def send(caller: Caller, door: str, standing: Mapping[str, str]) -> Any:
    request = REQUESTS[door]
    path, body = filled(request.path, standing), filled(request.body, standing)
    return caller.call(request.method, path, body, request.patch)


@pytest.mark.parametrize("door", [one for one in REQUESTS if one not in BY_RIGHT])
def test_policy_rejects_request_with_all_rbac_rights(
    mallory: Caller, standing: Mapping[str, str], door: str
) -> None:
    refused(send(mallory, door, standing), *REQUESTS[door].rules)


@pytest.mark.parametrize("door", REQUESTS)
def test_request_with_edit_role_is_rejected(
    eddy: Caller, standing: Mapping[str, str], door: str
) -> None:
    answer = send(eddy, door, standing)
    assert answer.status_code == 403, answer.text
    if 'User \\"eddy\\" cannot' not in answer.text:
        refused(answer, *REQUESTS[door].rules)


def test_objects_are_unchanged_after_all_requests(site: Site, standing: Mapping[str, str]) -> None:
    """Check after all requests that the objects exist unchanged and nothing was added."""
    space = f"/api/v1/namespaces/{site.workspace}"
    gang = site.access.get(f"{space}/pods?labelSelector={names.ATTEMPT}=8")["items"]
    one = site.access.get(f"{space}/pods/{standing['notebook']}")
    for it in (*gang, one):
        assert "deletionTimestamp" not in it["metadata"]
        assert it["spec"]["containers"][0]["image"] == "work"
    assert len(gang) == 2
    assert one["status"]["phase"] == "Running"
    for path in ("secrets/{attempt}", "services/{attempt}", "persistentvolumeclaims/{home}"):
        kept = site.access.get(f"{space}/{filled(path, standing)}")["metadata"]
        assert "deletionTimestamp" not in kept
