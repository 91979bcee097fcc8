"""The scheduler with the chart's account, under the chart's policies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from benchpool_cluster.chart import Site
from benchpool_scheduler.contract import CommandEntry, JobSubmission, State
from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.errors import Refused
from benchpool_support import replicas
from benchpool_support.replicas import Replica
from benchpool_support.waiting import until

pytestmark = pytest.mark.kubernetes

POOL = """\
version: 1
projects:
  - {name: susan, quota: 4, members: [susan]}
  - {name: joe, quota: 4, members: [joe]}
"""


WORKERS = {
    "BENCHPOOL_CPUS_PER_GPU": "1",
    "BENCHPOOL_MEMORY_GIB_PER_GPU": "2",
    "BENCHPOOL_CPU_LIMIT": "1.5",
    "BENCHPOOL_PRIORITY_CLASS": "benchpool",
}


@pytest.fixture(scope="module")
def scheduler(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    """Yield a leading replica."""
    account = site.access.service_account(site.rendered.namespace, "benchpool-scheduler")
    with replicas.small_hub() as hub:
        installation = replicas.Site(
            hub,
            account.kubeconfig,
            site.workspace,
            tmp_path_factory.mktemp("scheduler"),
            POOL,
            {"BENCHPOOL_RELEASE_NAMESPACE": site.rendered.namespace} | WORKERS,
        )
        try:
            yield installation.started()
        finally:
            installation.close()


def refusals(replica: Replica) -> list[str]:
    """Return the rejections by the API server, read from the replica's log."""
    lines = replica.log.read_text().splitlines()
    return [line for line in lines if "forbidden" in line.lower() or "denied" in line.lower()]


def test_gang_submitted_over_http_completes(site: Site, scheduler: Replica) -> None:
    entry = CommandEntry(["python3", "-m", "train"])
    job = scheduler.client("susan").submit(JobSubmission(entry=entry, gpus=2, workers=2))
    until(lambda: scheduler.client("susan").job(job.id).job.attempt == 1)
    attempt = names.attempt_name(job.id, 1)
    space = f"namespaces/{site.workspace}"
    for path in (
        f"/apis/batch/v1/{space}/jobs/{attempt}",
        f"/api/v1/{space}/secrets/{attempt}",
        f"/api/v1/{space}/services/{attempt}",
        f"/apis/networking.k8s.io/v1/{space}/networkpolicies/{attempt}",
    ):
        site.access.wait(path, lambda _: True)
    # kwok ends pods of Jobs immediately, without an agent that would report the exit.
    until(lambda: scheduler.client("susan").job(job.id).job.state is not State.QUEUED)
    with contextlib.suppress(Refused):  # already ended
        scheduler.client("susan").cancel(job.id)
    ended = {State.CANCELLED, State.FAILED, State.SUCCEEDED}
    until(lambda: scheduler.client("susan").job(job.id).job.state in ended)
    assert refusals(scheduler) == []


def test_workers_use_site_defaults_and_priority(site: Site, scheduler: Replica) -> None:
    entry = CommandEntry(["python3", "-m", "train"])
    job = scheduler.client("joe").submit(JobSubmission(entry=entry, gpus=2))
    pods = f"/api/v1/namespaces/{site.workspace}/pods?labelSelector={names.JOB}={job.id}"
    (pod,) = until(lambda: site.access.get(pods)["items"])
    asked = pod["spec"]["containers"][0]["resources"]
    assert asked["requests"] == {"cpu": "2", "memory": "4Gi", names.GPU_RESOURCE: "2"}
    assert asked["limits"] == {"cpu": "3", "memory": "4Gi", names.GPU_RESOURCE: "2"}
    assert pod["spec"]["priority"] == 1000
    assert refusals(scheduler) == []


def test_applied_job_is_scheduled(site: Site, scheduler: Replica) -> None:
    path = f"/apis/{names.API_VERSION}/namespaces/{site.workspace}/trainingjobs"
    job = {
        "apiVersion": names.API_VERSION,
        "kind": "TrainingJob",
        "metadata": {"name": "by-hand"},
        "spec": {"command": ["true"], "gpus": 1, "user": "joe", "project": "joe"},
    }
    joe = site.person("joe", "edit")
    answer = joe.call("POST", path, job)
    assert answer.status_code == 201, answer.text

    def decided(found: dict[str, Any]) -> bool:
        return bool(found.get("status", {}).get("attempts"))

    site.access.wait(f"{path}/by-hand", decided)
    assert joe.call("DELETE", f"{path}/by-hand").is_success
    assert refusals(scheduler) == []


def test_quotas_come_from_mounted_file(site: Site, scheduler: Replica) -> None:
    project = site.access.wait(f"/apis/{names.API_VERSION}/projects/joe", lambda _: True)
    assert project["spec"]["quota"] == 4
    assert refusals(scheduler) == []
