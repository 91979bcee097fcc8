"""Cores and memory of workers: the pool's default, and quotas and limits of the namespace."""

from __future__ import annotations

import pytest

from benchpool_cluster.access import Access
from benchpool_scheduler.client import Client
from benchpool_scheduler.contract import State
from benchpool_scheduler.errors import InvalidInput
from benchpool_support.pods_of_jobs import command, pods, running
from benchpool_support.replicas import Site
from benchpool_support.waiting import until

pytestmark = pytest.mark.kubernetes


def test_job_waits_for_namespace_quota_and_then_starts(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    quotas = f"/api/v1/namespaces/{site.namespace}/resourcequotas"
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}}
    access.create(quotas, quota | {"spec": {"hard": {"limits.memory": "1Gi"}}})
    access.wait(f"{quotas}/team", lambda it: "hard" in it.get("status", {}))
    client = site.started().client("susan")
    job = client.submit(command(memory_gib=2))

    def waits() -> str:
        found = client.job(job.id)
        assert found.job.state in (State.QUEUED, State.STARTING)
        reason = client.why(job.id).reason
        return reason.text if reason is not None and reason.code == "namespace-quota" else ""

    text = until(waits)
    assert f"quota team of namespace {site.namespace} has no room: limits.memory" in text
    assert "of 1Gi used" in text
    # It may be retried more often than a lost job, and is not given up.
    until(lambda: client.job(job.id).job.attempt >= 3)
    access.patch(f"{quotas}/team", {"spec": {"hard": {"limits.memory": "8Gi"}}})
    running(access, site, job.id)


def waits_because(client: Client, job: str) -> str:
    """Wait until the namespace's limits delay a job, and return the reason."""

    def waits() -> str:
        reason = client.why(job).reason
        return reason.text if reason is not None and reason.code == "namespace-quota" else ""

    return until(waits)


def waits_for(client: Client, job: str, words: str) -> None:
    """Wait until a job's reason contains these words; a failure shows the actual reason."""
    text = ""

    def look() -> bool:
        nonlocal text
        reason = client.why(job).reason
        text = "no reason" if reason is None else reason.text
        return words in text

    try:
        until(look)
    except AssertionError:
        nodes = [node.text for node in client.nodes()]
        jobs = [(one.id, one.state, one.attempt) for one in client.jobs(all_=True)]
        raise AssertionError(f"not {words!r} of {job}, but {text!r}; {nodes}, {jobs}") from None


def test_default_amounts_are_counted_and_shown(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    # A node has 64 cores: with 40 for each GPU it holds one such job.
    site.more = {"BENCHPOOL_CPUS_PER_GPU": "40", "BENCHPOOL_MEMORY_GIB_PER_GPU": "1.5"}
    client = site.started().client("susan")
    previewed = client.preview(command()).container
    assert previewed is not None
    assert (previewed.cpus, previewed.memory_gib) == (40, 1.5)
    assert "with 40 cores by default and with 1.5 GiB of memory by default" in previewed.text
    with pytest.raises(InvalidInput, match="80 cores for a worker, the default of this pool"):
        client.submit(command(gpus=2))
    jobs = [client.submit(command()).id for _ in nodes]
    placed = [running(access, site, job)[0]["spec"] for job in jobs]
    assert {spec["nodeName"] for spec in placed} == set(nodes)
    asked = placed[0]["containers"][0]["resources"]
    assert (asked["requests"]["cpu"], asked["limits"]["memory"]) == ("40", "1536Mi")
    late = client.submit(command()).id
    waits_for(client, late, "40 CPUs")
    assert not pods(access, site, late)
    # A job with smaller amounts fits beside them.
    small = client.submit(command(cpus=2)).id
    (pod,) = running(access, site, small)
    assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"
    container = client.job(small).container
    assert container is not None
    assert "with 2 cores and with 1.5 GiB of memory by default" in container.text


def test_running_workers_keep_amounts_after_default_change(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    # A node has 64 cores, 40 of them held, whatever the default is later.
    site.more = {"BENCHPOOL_CPUS_PER_GPU": "40"}
    first = site.started()
    jobs = [first.client("susan").submit(command()).id for _ in nodes]
    for job in jobs:
        running(access, site, job)
    assert first.end() == 0
    site.more = {"BENCHPOOL_CPUS_PER_GPU": "1", "BENCHPOOL_MEMORY_GIB_PER_GPU": "1"}
    client = site.started().client("susan")
    held = client.job(jobs[0]).container
    assert held is not None
    assert (held.cpus, held.memory_gib) == (40, 0)
    large = client.submit(command(cpus=30)).id
    waits_for(client, large, "30 CPUs")
    assert not pods(access, site, large)
    small = client.submit(command()).id
    (pod,) = running(access, site, small)
    assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"


def test_required_amounts_come_from_job_or_pool_default(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    quotas = f"/api/v1/namespaces/{site.namespace}/resourcequotas"
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "named"}}
    hard = {"limits.memory": "64Gi", "requests.cpu": "32"}
    access.create(quotas, quota | {"spec": {"hard": hard}})
    access.wait(f"{quotas}/named", lambda it: "hard" in it.get("status", {}))
    first = site.started()
    silent = first.client("susan").submit(command()).id
    text = waits_because(first.client("susan"), silent)
    assert f"quota named of namespace {site.namespace} admits only pods that specify" in text
    assert "(by --cpus and --memory)" in text
    outspoken = first.client("susan").submit(command(cpus=1, memory_gib=1)).id
    running(access, site, outspoken)
    assert first.end() == 0
    site.more = {"BENCHPOOL_CPUS_PER_GPU": "1", "BENCHPOOL_MEMORY_GIB_PER_GPU": "2"}
    site.started()
    (pod,) = running(access, site, silent)
    assert pod["spec"]["containers"][0]["resources"]["limits"]["memory"] == "2Gi"


def test_limit_range_delays_job_until_removed(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    ranges = f"/api/v1/namespaces/{site.namespace}/limitranges"
    small = {"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}}
    access.create(ranges, limits | {"spec": small})
    client = site.started().client("susan")
    job = client.submit(command(memory_gib=2)).id
    text = waits_because(client, job)
    assert f"a limit range of namespace {site.namespace} does not allow it: maximum memory" in text
    assert "is 1Gi" in text
    assert client.job(job).job.state in (State.QUEUED, State.STARTING)
    access.delete(f"{ranges}/small")
    running(access, site, job)
