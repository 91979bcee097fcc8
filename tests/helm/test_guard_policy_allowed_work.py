"""The guard policies accept the daily work of users, administrators and the cluster."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from benchpool_cluster import build, chart
from benchpool_cluster.chart import Caller, Manifest, Site
from benchpool_cluster.doors import GATE, GPU, affinity, pod, refused
from benchpool_cluster.kwok_nodes import TOLERATION
from benchpool_cluster.requests import made
from benchpool_scheduler.contract import kubernetes as names
from benchpool_support.waiting import until

pytestmark = pytest.mark.kubernetes

RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
NOTEBOOK = {names.ROLE: names.ROLE_NOTEBOOK, names.LEASE: "l", "component": "singleuser-server"}
PIN = [
    {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": affinity("gpu-2")}},
    {"op": "remove", "path": "/spec/schedulingGates"},
]


@pytest.fixture
def notebook(site: Site, pods: str) -> Iterator[str]:
    """Yield the path of a notebook with a GPU that runs on gpu-2."""
    here = f"{pods}/jupyter-jemma"
    body = pod(
        {"schedulingGates": GATE, "tolerations": [TOLERATION]}, labels=NOTEBOOK, resources=GPU
    )
    body["metadata"]["name"] = "jupyter-jemma"
    assert site.account("hub").call("POST", pods, body).is_success
    done = site.account("scheduler").call("PATCH", here, PIN, "json")
    assert done.is_success, done.text
    site.access.wait(here, lambda it: it["status"].get("phase") == "Running")
    yield here
    site.access.delete(here, 0)
    site.access.wait_gone(here)


@pytest.fixture(scope="module")
def eddy(site: Site) -> Caller:
    """Return a caller with the role that an administrator may grant."""
    return site.person("eddy", "edit")


def passes(answer: Any) -> Manifest:
    assert answer.is_success, answer.text
    found: Manifest = answer.json()
    return found


def test_administrator_drains_node(site: Site, notebook: str) -> None:
    kubectl = [str(build.find("kubectl")), "--kubeconfig", str(site.access.kubeconfig)]
    drain = ["drain", "gpu-2", "--force", "--ignore-daemonsets", "--timeout=60s"]
    done = subprocess.run([*kubectl, *drain], capture_output=True, text=True, check=False)
    subprocess.run([*kubectl, "uncordon", "gpu-2"], check=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    site.access.wait_gone(notebook)


def test_cordon_right_allows_eviction(site: Site, notebook: str) -> None:
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "patch"]},
    ]
    role = made("ClusterRole", group="rbac.authorization.k8s.io/v1", name="drainer")
    site.access.apply(f"{RIGHTS}/clusterroles/drainer", role | {"rules": rules})
    binding = made("ClusterRoleBinding", group="rbac.authorization.k8s.io/v1", name="drainer")
    group = "rbac.authorization.k8s.io"
    who = {
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "drainer"},
        "subjects": [{"kind": "User", "name": "dora", "apiGroup": group}],
    }
    site.access.apply(f"{RIGHTS}/clusterrolebindings/drainer", binding | who)
    dora = Caller(site.access, "dora")
    mark = {"metadata": {"labels": {"mine": "1"}}}
    refused(dora.call("PATCH", notebook, mark, "merge"), "change")
    eviction = made("Eviction", group="policy/v1", name="jupyter-jemma")
    passes(dora.call("POST", f"{notebook}/eviction", eviction))
    site.access.wait_gone(notebook)


def test_controller_cannot_adopt_notebook(site: Site, notebook: str) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "mine", "uid": "1-1"}
    patch = {"metadata": {"ownerReferences": [owner | {"controller": True}]}}
    refused(
        site.controller("replicaset-controller").call("PATCH", notebook, patch, "merge"), "owner"
    )


def _answers(caller: Caller, path: str, wanted: int) -> bool:
    note = {"metadata": {"annotations": {"example.org/kept": "1"}}}
    return caller.call("PATCH", path, note, "merge").status_code == wanted


def test_trusted_account_passes_guard(site: Site, notebook: str) -> None:
    backup = site.account_in("backup", "keeper")
    site.access.apply("/api/v1/namespaces/backup", made("Namespace", name="backup"))
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"kind": "ServiceAccount", "name": "keeper", "namespace": "backup"}
    binding = made("RoleBinding", group="rbac.authorization.k8s.io/v1", name="keeper")
    path = f"{RIGHTS}/namespaces/{site.workspace}/rolebindings/keeper"
    site.access.apply(path, binding | {"roleRef": role, "subjects": [subject]})
    assert _answers(backup, notebook, 403)
    rendered = chart.render({"policies": {"trusted": [backup.user]}})
    for one in (rendered, site.rendered):
        guard = one.the("ValidatingAdmissionPolicy", "benchpool-guard")
        site.access.apply(chart.place(guard), guard)
        wanted = 200 if one is rendered else 403
        until(partial(_answers, backup, notebook, wanted))


def test_job_deletion_removes_owned_secret(site: Site) -> None:
    scheduler, name = site.account("scheduler"), names.attempt_name("01hzxk8qj9v4e2c5t7m3n6p8ra", 5)
    labels = {names.ROLE: names.ROLE_WORKER, names.JOB: "x", names.ATTEMPT: "5"}
    template = {"metadata": {"labels": labels}, "spec": pod({"schedulingGates": GATE})["spec"]}
    jobs = f"/apis/batch/v1/namespaces/{site.workspace}/jobs"
    job = made("Job", {"template": template}, "batch/v1", name=name, labels=labels)
    uid = passes(scheduler.call("POST", jobs, job))["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}
    secret = made("Secret", name=name, labels=labels, ownerReferences=[owner])
    passes(scheduler.call("POST", f"/api/v1/namespaces/{site.workspace}/secrets", secret))
    site.access.wait(f"{jobs}/{name}", lambda it: it["status"].get("active") == 1)
    passes(scheduler.call("DELETE", f"{jobs}/{name}?propagationPolicy=Background"))
    site.access.wait_gone(f"/api/v1/namespaces/{site.workspace}/secrets/{name}")
    query = f"/api/v1/namespaces/{site.workspace}/pods?labelSelector=job-name={name}"
    until(lambda: not site.access.get(query)["items"])


def test_managed_namespace_with_objects_can_be_deleted(site: Site) -> None:
    space = made("Namespace", name="leaving", labels={names.MANAGED: "true"})
    site.access.create("/api/v1/namespaces", space)
    home = made("PersistentVolumeClaim", CLAIM, name="home-joe")
    home["metadata"]["annotations"] = {"hub.jupyter.org/username": "joe"}
    path = "/api/v1/namespaces/leaving"
    site.access.create(f"{path}/persistentvolumeclaims", home)
    site.access.create(f"{path}/secrets", made("Secret", name="bp-x-1", labels={names.JOB: "x"}))
    site.access.delete(path)
    site.access.wait_gone(path)


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
APP = {"matchLabels": {"app": "own"}}
OWN: dict[str, Manifest] = {
    "/api/v1|pods": pod(labels={"app": "own"}),
    "/api/v1|configmaps": made("ConfigMap"),
    "/api/v1|secrets": made("Secret"),
    "/api/v1|services": made("Service", {"ports": [{"port": 80}], "selector": APP["matchLabels"]}),
    "/api/v1|persistentvolumeclaims": made("PersistentVolumeClaim", CLAIM),
    "/apis/apps/v1|deployments": made(
        "Deployment",
        {
            "selector": APP,
            "template": {
                "metadata": {"labels": {"app": "own"}},
                "spec": pod({"restartPolicy": "Always"})["spec"],
            },
        },
        "apps/v1",
    ),
    "/apis/batch/v1|jobs": made("Job", {"template": {"spec": pod()["spec"]}}, "batch/v1"),
    "/apis/policy/v1|poddisruptionbudgets": made(
        "PodDisruptionBudget", {"maxUnavailable": 1, "selector": APP}, "policy/v1"
    ),
    "/apis/networking.k8s.io/v1|networkpolicies": made(
        "NetworkPolicy", {"podSelector": APP, "ingress": [{}]}, "networking.k8s.io/v1"
    ),
    "/apis/autoscaling/v2|horizontalpodautoscalers": made(
        "HorizontalPodAutoscaler",
        {
            "maxReplicas": 2,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "mine"},
        },
        "autoscaling/v2",
    ),
}


@pytest.mark.parametrize("kind", OWN)
def test_own_objects_are_created_changed_and_deleted(site: Site, eddy: Caller, kind: str) -> None:
    group, plural = kind.split("|")
    path = f"{group}/namespaces/{site.workspace}/{plural}"
    name = OWN[kind]["metadata"]["name"]
    passes(eddy.call("POST", path, OWN[kind]))
    labels = {"metadata": {"labels": {"team": "own"}}}
    passes(eddy.call("PATCH", f"{path}/{name}", labels, "merge"))
    if plural in ("deployments", "jobs"):  # controllers create their pods
        chosen = "app=own" if plural == "deployments" else f"job-name={name}"
        query = f"/api/v1/namespaces/{site.workspace}/pods?labelSelector={chosen}"
        until(lambda: site.access.get(query)["items"])
    passes(eddy.call("DELETE", f"{path}/{name}?propagationPolicy=Background"))
    site.access.wait_gone(f"{path}/{name}")


@pytest.mark.parametrize("door", ["secret", "home"])
def test_controller_pod_with_foreign_volume_is_rejected(
    site: Site, eddy: Caller, door: str
) -> None:
    volume = {
        "secret": {"secret": {"secretName": "bp-x-1"}},
        "home": {"persistentVolumeClaim": {"claimName": "home-joe"}},
    }[door]
    spec = pod({"volumes": [{"name": "v"} | volume]})["spec"]
    job = made("Job", {"template": {"spec": spec}}, "batch/v1", name=f"takes-{door}")
    path = f"/apis/batch/v1/namespaces/{site.workspace}/jobs"
    passes(eddy.call("POST", path, job))
    events = f"/api/v1/namespaces/{site.workspace}/events?fieldSelector=reason=FailedCreate"
    message = f"benchpool [{door}]"
    until(lambda: message in str(site.access.get(events)["items"]))
    site.access.delete(f"{path}/takes-{door}?propagationPolicy=Background")
