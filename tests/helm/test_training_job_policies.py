"""Policies for TrainingJobs: the user owns the job, and only the scheduler writes its status."""

from __future__ import annotations

import itertools
from typing import Any

import httpx
import pytest

from benchpool_cluster.chart import Caller, Manifest, Site
from benchpool_scheduler.contract import kubernetes as names

pytestmark = pytest.mark.kubernetes

count = itertools.count()


def job(user: str | None, **about: Any) -> Manifest:
    """Return a TrainingJob for this user."""
    spec = {"command": ["true"], "gpus": 1} | ({"user": user} if user else {})
    return {
        "apiVersion": names.API_VERSION,
        "kind": "TrainingJob",
        "metadata": {"name": f"job-{next(count)}"} | about,
        "spec": spec,
    }


def refused(answer: httpx.Response, rule: str) -> None:
    """Assert that the rule rejected the request."""
    assert answer.status_code == 403, answer.text
    assert f"benchpool [{rule}]" in answer.json()["message"], answer.text


@pytest.fixture(scope="module")
def susan(site: Site) -> Caller:
    return site.person("susan", "edit")


@pytest.fixture(scope="module")
def joe(site: Site) -> Caller:
    """Return a caller with more verbs than usual but no right to act for other users."""
    rules = [
        {"apiGroups": [names.GROUP], "resources": ["trainingjobs/scale"], "verbs": ["*"]},
        {
            "apiGroups": [names.GROUP],
            "resources": ["trainingjobs"],
            "verbs": ["deletecollection"],
        },
    ]
    site.access.apply(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/far-reaching",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "far-reaching"},
            "rules": rules,
        },
    )
    return site.person("joe", "edit", "far-reaching")


@pytest.fixture(scope="module")
def jobs(site: Site) -> str:
    return f"/apis/{names.API_VERSION}/namespaces/{site.workspace}/trainingjobs"


@pytest.fixture
def susans(susan: Caller, jobs: str) -> str:
    """Return the path of a job that susan sent with kubectl."""
    mine = job("susan")
    answer = susan.call("POST", jobs, mine)
    assert answer.status_code == 201, answer.text
    return f"{jobs}/{mine['metadata']['name']}"


def test_job_for_another_user_is_rejected(joe: Caller, jobs: str) -> None:
    answer = joe.call("POST", jobs, job("susan"))
    refused(answer, "user")
    assert "spec.user is susan, but you are joe" in answer.text


def test_job_without_user_is_rejected(joe: Caller, jobs: str) -> None:
    refused(joe.call("POST", jobs, job(None)), "user")


@pytest.mark.parametrize(
    "patch",
    [{"spec": {"suspend": True}}, {"spec": {"user": "joe"}}, {"metadata": {"labels": {"a": "b"}}}],
)
def test_change_by_another_user_is_rejected(joe: Caller, susans: str, patch: object) -> None:
    refused(joe.call("PATCH", susans, patch, "merge"), "user")


def test_deletion_by_another_user_is_rejected(joe: Caller, susans: str, jobs: str) -> None:
    refused(joe.call("DELETE", susans), "user")
    refused(joe.call("DELETE", jobs), "user")


def test_job_owner_cannot_be_changed(susan: Caller, susans: str) -> None:
    refused(susan.call("PATCH", susans, {"spec": {"user": "joe"}}, "merge"), "user")


def test_owner_suspends_and_deletes_job(susan: Caller, susans: str) -> None:
    changed = susan.call("PATCH", susans, {"spec": {"suspend": True}}, "merge")
    assert changed.is_success, changed.text
    deleted = susan.call("DELETE", susans)
    assert deleted.is_success, deleted.text


def test_scheduler_acts_for_any_user(site: Site, jobs: str) -> None:
    scheduler = site.account("scheduler")
    about = {"annotations": {names.EPOCH: "3"}, "labels": {names.JOB: "x"}}
    sent = job("jemma", **about)
    assert scheduler.call("POST", jobs, sent).status_code == 201
    path = f"{jobs}/{sent['metadata']['name']}"
    status = {"status": {"state": "queued", "epoch": 3}}
    answer = scheduler.call("PATCH", f"{path}/status", status, "merge")
    assert answer.is_success, answer.text
    asked = {"spec": {"workers": 3, "priority": 80}}
    changed = scheduler.call("PATCH", path, asked, "merge")
    assert changed.is_success, changed.text
    assert scheduler.call("DELETE", path).is_success


def test_administrator_suspends_job_of_another_user(site: Site, susans: str) -> None:
    boss = site.person("boss", "edit", "benchpool-administer")
    answer = boss.call("PATCH", susans, {"spec": {"suspend": True}}, "merge")
    assert answer.is_success, answer.text


def test_scaling_by_another_user_is_rejected(joe: Caller, susans: str) -> None:
    refused(joe.call("PATCH", f"{susans}/scale", {"spec": {"replicas": 9}}, "merge"), "scale")


@pytest.mark.parametrize("key", ["labels", "annotations"])
def test_forged_labels_and_annotations_are_rejected(
    susan: Caller, susans: str, jobs: str, key: str
) -> None:
    forged = {key: {names.JOB: "01hzxk8qj9v4e2c5t7m3n6p8ra"}}
    refused(susan.call("POST", jobs, job("susan", **forged)), "keys")
    refused(susan.call("PATCH", susans, {"metadata": forged}, "merge"), "keys")


def test_status_change_by_cluster_admin_is_rejected(site: Site, susans: str) -> None:
    mallory = site.person("mallory", "cluster-admin")
    patch = {"status": {"state": "succeeded"}}
    refused(mallory.call("PATCH", f"{susans}/status", patch, "merge"), "status")


def test_project_status_change_is_rejected(site: Site) -> None:
    projects = f"/apis/{names.API_VERSION}/projects"
    about = {"apiVersion": names.API_VERSION, "kind": "Project", "metadata": {"name": "research"}}
    site.access.apply(f"{projects}/research", about | {"spec": {"quota": 2}})
    answer = site.access.call("PATCH", f"{projects}/research/status", {"status": {}}, "merge")
    refused(answer, "status")


def test_build_lease_of_cluster_admin_is_rejected(site: Site) -> None:
    leases = f"/apis/{names.API_VERSION}/namespaces/{site.workspace}/buildleases"
    mallory = site.person("mallory", "cluster-admin")
    lease = {
        "apiVersion": names.API_VERSION,
        "kind": "BuildLease",
        "metadata": {"name": "forged"},
        "spec": {
            "user": "mallory",
            "spawn": "1",
            "gpus": ["gpu-1/0"],
            "since": "2026-01-01T00:00:00Z",
        },
    }
    refused(mallory.call("POST", leases, lease), "lease")


def test_namespace_with_jobs_can_be_deleted(site: Site) -> None:
    path = "/api/v1/namespaces/passing"
    about = {"name": "passing", "labels": {names.MANAGED: "true"}}
    site.access.apply(path, {"apiVersion": "v1", "kind": "Namespace", "metadata": about})
    here = f"/apis/{names.API_VERSION}/namespaces/passing/trainingjobs"
    site.access.create(here, job("susan"))
    site.access.delete(path)
    site.access.wait_gone(path)


@pytest.mark.parametrize("managed", [None, "false"])
def test_job_in_unmanaged_namespace_is_rejected(site: Site, managed: str | None) -> None:
    name = f"elsewhere-{managed}".lower()
    about = {"name": name, "labels": {} if managed is None else {names.MANAGED: managed}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": about}
    site.access.apply(f"/api/v1/namespaces/{name}", namespace)
    susan = site.person("susan", "edit")
    path = f"/apis/{names.API_VERSION}/namespaces/{name}/trainingjobs"
    answer = site.access.call("POST", path, job("susan"))
    refused(answer, "namespace")
    assert f"kubectl -n {site.workspace} create -f FILE" in answer.text
    assert susan.call("POST", path.replace(name, site.workspace), job("susan")).status_code == 201
