"""Silent or drained nodes and foreign pods on GPUs: jobs continue elsewhere, once.

The fate of jobs and pods is read from the API server.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchpool_cluster import containers, kwok_nodes, parts, pods
from benchpool_cluster.cluster import GPUS
from benchpool_cluster.placements import Record, attempts, doubled
from benchpool_cluster.sharing import Use
from benchpool_cluster.sites import Site, state_of
from benchpool_cluster.witness import Object
from benchpool_scheduler.contract import CommandEntry, GpuState, JobSubmission
from benchpool_support.waiting import until

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(2400)]

STEPS = """
import os, sys, time
seconds = sys.argv[min(int(os.environ["BENCHPOOL_ATTEMPT"]), len(sys.argv) - 1)]
for _ in range(2 * int(seconds)):
    time.sleep(0.5)
"""
FENCED = {
    "key": "node.kubernetes.io/out-of-service",
    "value": "nodeshutdown",
    "effect": "NoExecute",
}


@pytest.fixture
def record(site: Site) -> Iterator[Record]:
    """Yield the record of all worker pods of one test."""
    with Record(site.access, site.workspace) as made:
        yield made


def submit(site: Site, user: str, *seconds: int, gpus: int = 1, workers: int = 1) -> str:
    """Send a job and return its ID.

    The first, second and later attempts run for the given times, in seconds.
    """
    entry = CommandEntry(["python3", "-c", STEPS, *map(str, seconds)])
    with site.client(user) as client:
        return client.submit(JobSubmission(entry=entry, gpus=gpus, workers=workers)).id


def nodes_of(workers: list[Object]) -> list[str]:
    """Return the nodes of the workers, by index."""
    return [str(one["spec"].get("nodeName", "")) for one in workers]


def gpus_that_are(site: Site, state: GpuState, count: int) -> None:
    """Wait until the scheduler has seen this number of GPUs in this state.

    The scheduler polls every few seconds.
    """

    def seen() -> bool:
        with site.client("admin") as admin:
            return admin.status().counts.get(state, 0) == count

    until(seen, f"the scheduler sees {count} GPUs as {state}")


def gang_on(site: Site, node: str, *seconds: int) -> tuple[str, list[Object]]:
    """Start a gang of two workers, one of them on this node; return the gang with its pods."""
    other = next(one.name for one in site.cluster.nodes if one.name != node)
    with parts.cordoned(site, other):
        gpus_that_are(site, GpuState.BROKEN, GPUS)
        gang = submit(site, "susan", *seconds, workers=2)
        site.wait_job(gang, "running")
    found = site.workers(gang, 1)
    assert nodes_of(found) == [node, node]
    return gang, found


@contextmanager
def silent(site: Site, node: str) -> Iterator[None]:
    """Freeze a node's kubelet, and resume it at the end."""
    cluster = site.cluster
    kubelet = cluster.node(node).kubelet
    path = f"{kwok_nodes.NODES}/{node}"
    cluster.processes.freeze(kubelet)
    try:
        site.access.wait(path, lambda it: not kwok_nodes.is_ready(it), 60)
        yield
    finally:
        cluster.processes.thaw(kubelet)
        site.access.wait(path, kwok_nodes.is_ready, 60)


@contextmanager
def fenced(site: Site, node: str) -> Iterator[None]:
    """Mark a node as switched off, as its administrator does."""
    path = f"{kwok_nodes.NODES}/{node}"
    taints = site.access.get(path)["spec"].get("taints", [])
    site.access.patch(path, {"spec": {"taints": [*taints, FENCED]}})
    try:
        yield
    finally:
        left = [it for it in site.access.get(path)["spec"].get("taints", []) if it != FENCED]
        site.access.patch(path, {"spec": {"taints": left}})


def test_gang_on_silent_node_restarts_once_elsewhere(
    site: Site, record: Record, cluster_use: Use
) -> None:
    node = parts.quiet_node(site)
    with cluster_use.alone() as ours:
        if not ours:
            pytest.skip("somebody else uses the cluster now")
        gang, workers = gang_on(site, node, 600, 10)
        with silent(site, node):
            for one in workers:
                site.access.wait(
                    parts.path_of(one), lambda it: "deletionTimestamp" in it["metadata"]
                )
            # Kubernetes has given the pods up, but they may run: no replacement starts elsewhere.
            other = submit(site, "joe", 1)
            site.wait_job(other, "succeeded")
            assert state_of(site.job(gang)) in ("running", "pausing")
            assert attempts(record.lives)[gang] == 1
            for one in workers:
                os.kill(containers.main_process(one), signal.SIGKILL)
            with fenced(site, node):
                until(lambda: len(site.workers(gang, 2)) == 2)
                assert site.wait_job(gang, "succeeded")["status"]["attempt"] == 2
        found = record.complete()
        assert doubled(found) == []
        assert attempts(found)[gang] == 2
        again = [life.node for life in found if (life.job, life.attempt) == (gang, 2)]
        assert len(again) == 2
        assert node not in again


def test_gang_on_drained_node_restarts_once_elsewhere(site: Site, record: Record) -> None:
    node = parts.quiet_node(site)
    gang, _ = gang_on(site, node, 600, 10)
    drain = ["drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout", "120s"]
    try:
        done = subprocess.run(site.cluster.kubectl(*drain), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert site.wait_job(gang, "succeeded")["status"]["attempt"] == 2
        found = record.complete()
        assert doubled(found) == []
        assert attempts(found)[gang] == 2
        assert [life.node for life in found if life.attempt == 2 and life.node == node] == []
    finally:
        subprocess.run(site.cluster.kubectl("uncordon", node), check=True, capture_output=True)


def test_gpus_of_foreign_pod_are_counted_and_returned(site: Site, record: Record) -> None:
    node = parts.quiet_node(site)
    with pods.space(site.cluster) as elsewhere:
        foreign = pods.python_pod("foreign", pods.WAIT, gpus=3, node=node)
        elsewhere.run(foreign)
        gpus_that_are(site, GpuState.FOREIGN, 3)
        # Three workers of two GPUs: the other node holds two of them, this node none.
        gang = submit(site, "susan", 5, gpus=2, workers=3)
        site.wait_job(gang, "queued")
        until(
            lambda: site.job(gang)["status"].get("reason", {}).get("text", ""),
            "the reason has numbers",
            holds=lambda text: re.search(r"\d", text),
        )
        assert record.lives == []
    site.wait_job(gang, "succeeded")
    found = record.complete()
    assert node in [life.node for life in found]
    assert (doubled(found), attempts(found)[gang]) == ([], 1)
    assert {life.phase for life in found} == {"Succeeded"}
