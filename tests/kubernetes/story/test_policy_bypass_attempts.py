"""A user cannot get GPUs or other users' jobs past the scheduler of an installed release.

The single rules are tested in tests/helm. Here the installed chart applies them while a notebook
and jobs run, and the outcome is read from the API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from benchpool_cluster.chart import Caller, Manifest
from benchpool_cluster.images import BASE
from benchpool_cluster.sites import JOBS, Site, gpus_of, lives, state_of
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract import kubernetes as names

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(1200)]

RBAC = "rbac.authorization.k8s.io"
GPU = {"limits": {names.GPU_RESOURCE: "1"}}
GATE = [{"name": names.ADMISSION_GATE}]
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}
ASK = """
import json, ssl, urllib.request
trust = ssl._create_unverified_context()
try:
    urllib.request.urlopen("https://kubernetes.default.svc/api/v1/pods", context=trust, timeout=5)
    print("listed")
except urllib.error.HTTPError as refused:
    print("refused", refused.code)
except OSError as away:
    print("away")
"""


@pytest.fixture
def susan(site: Site) -> Iterator[Caller]:
    """Yield susan with kubectl and the role that an administrator may grant: `edit`."""
    path = f"/apis/{RBAC}/v1/namespaces/{site.workspace}/rolebindings"
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "susan"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "User", "name": "susan", "apiGroup": RBAC}],
    }
    site.access.create(path, binding)
    yield Caller(site.access, "susan")
    site.access.delete(f"{path}/susan")


def pod(name: str, **spec: Any) -> Manifest:
    container = {
        "name": "main",
        "image": BASE,
        "imagePullPolicy": "Never",
        "command": ["sleep", "600"],
        "resources": GPU,
        "securityContext": RESTRICTED,
    }
    about = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
    return about | {"spec": {"containers": [container]} | spec}


def job(user: str) -> Manifest:
    spec = {"user": user, "command": ["sleep", "600"], "gpus": 1}
    about = {"apiVersion": names.API_VERSION, "kind": "TrainingJob", "metadata": {"name": "taken"}}
    return about | {"spec": spec}


def refused(answer: httpx.Response) -> str:
    """Assert that a call was forbidden, and return the message."""
    assert answer.status_code == 403, answer.text
    return str(answer.json()["message"])


def test_notebook_has_no_api_server_rights(site: Site) -> None:
    notebook = site.start_notebook("susan", gpus=1)
    assert notebook["spec"]["automountServiceAccountToken"] is False
    folder = "/var/run/secrets/kubernetes.io"
    assert site.space.exec("jupyter-susan", "sh", "-c", f"ls {folder} 2>&1 || true").endswith(
        "No such file or directory\n"
    )
    answer = site.space.exec("jupyter-susan", "python3", "-c", ASK).split()
    assert answer in (["away"], ["refused", "401"], ["refused", "403"])


def test_namespace_editor_cannot_bypass_scheduler(site: Site, susan: Caller) -> None:
    with site.client("joe") as joe:
        theirs = joe.submit(JobSubmission(entry=CommandEntry(["sleep", "600"]))).id
    site.wait_job(theirs, "running")
    (worker,) = site.workers(theirs)
    pods = site.space.path("pods")
    words = [
        refused(susan.call("POST", pods, pod("ungated"))),
        refused(susan.call("POST", pods, pod("gated", schedulingGates=GATE))),
        refused(susan.call("POST", pods, pod("placed", nodeName="node-1"))),
        refused(susan.call("POST", f"{JOBS}/namespaces/{site.workspace}/trainingjobs", job("joe"))),
    ]
    for text in words:
        assert "benchpool [" in text
    template = {"metadata": {"labels": {"app": "many"}}, "spec": pod("")["spec"]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "many"},
        "spec": {"selector": {"matchLabels": {"app": "many"}}, "template": template},
    }
    path = f"/apis/apps/v1/namespaces/{site.workspace}/deployments"
    assert "benchpool [" in refused(susan.call("POST", path, deployment))
    # She cannot change quotas, leases or the scheduler's status of jobs either.
    more = {"spec": {"quota": 8}}
    refused(susan.call("PATCH", f"{JOBS}/projects/susan", more, "merge"))
    ended = {"status": {"state": "cancelled"}}
    refused(susan.call("PATCH", f"{site.jobs_path}/{theirs}/status", ended, "merge"))
    refused(susan.call("DELETE", f"{site.jobs_path}/{theirs}"))
    lease = {"spec": {"user": "susan", "server": "", "spawn": "1", "gpus": ["node-1/0"]}}
    about = {"apiVersion": names.API_VERSION, "kind": "BuildLease", "metadata": {"name": "mine"}}
    path = f"{JOBS}/namespaces/{site.workspace}/buildleases"
    refused(susan.call("POST", path, about | lease))
    # The same pods still run, and every GPU is held by a pod of the scheduler.
    (now,) = site.workers(theirs)
    assert (state_of(site.job(theirs)), lives(now)) == ("running", lives(worker))
    living = "fieldSelector=status.phase!=Succeeded,status.phase!=Failed"
    holding = [one for one in site.access.get(f"{pods}?{living}")["items"] if gpus_of(one)]
    assert [one["metadata"]["name"] for one in holding] == [worker["metadata"]["name"]]
