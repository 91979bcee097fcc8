"""Failures of the installed release's parts while jobs run: no job dies or starts twice.

Scheduler, Hub and API server are killed or stopped by signals. The fate of the jobs is read from
the API server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from benchpool_cluster import containers, kwok_nodes, parts
from benchpool_cluster.placements import Record, attempts, doubled
from benchpool_cluster.sharing import Use
from benchpool_cluster.sites import Site, lives
from benchpool_cluster.witness import Object
from benchpool_scheduler.contract import CommandEntry, JobSubmission, State
from benchpool_support import direct
from benchpool_support.waiting import until

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(2400)]

LOST_STATUS = 3
"""Exit status of a scheduler that has lost its lease to another replica."""
AWAY_S = 120
STEPS = "import sys, time; [time.sleep(0.5) for _ in range(2 * int(sys.argv[1]))]"


@pytest.fixture
def record(site: Site) -> Iterator[Record]:
    """Yield the record of all worker pods of one test."""
    with Record(site.access, site.workspace) as made:
        yield made


def submit(site: Site, user: str, seconds: int) -> str:
    """Send a job that runs for some seconds, with retries until it is accepted; return its ID."""
    entry = CommandEntry(["python3", "-c", STEPS, str(seconds)])
    with site.client(user, patience_s=150) as client:
        return client.submit(JobSubmission(entry=entry)).id


def running(site: Site, job: str) -> Object:
    """Wait until a job of one worker runs, and return its pod."""
    site.wait_job(job, "running", 90)
    (pod,) = site.workers(job)
    return pod


def ran_once(record: Record, *jobs: str) -> None:
    """Assert that each job had one attempt and nothing ran twice."""
    seen = record.complete()
    assert doubled(seen) == []
    assert {job: attempts(seen)[job] for job in jobs} == dict.fromkeys(jobs, 1)


def test_jobs_survive_scheduler_kill_and_replacement(site: Site, record: Record) -> None:
    first = submit(site, "susan", 60)
    pod = running(site, first)
    leader = parts.leader(site)
    containers.kill(leader)
    following = parts.leader_after(site, leader)
    second = submit(site, "joe", 5)
    running(site, second)
    site.access.delete(parts.path_of(following), grace_seconds=0)
    parts.leader_after(site, following)
    third = submit(site, "jemma", 5)
    assert lives(running(site, first)) == lives(pod)
    for job in (first, second, third):
        site.wait_job(job, "succeeded", 180)
    ran_once(record, first, second, third)
    parts.wait_whole(site, "scheduler", 2)


def test_resumed_leader_starts_nothing_twice(site: Site, record: Record) -> None:
    parts.wait_whole(site, "scheduler", 2)
    before = [submit(site, user, 60) for user in ("susan", "joe")]
    for job in before:
        running(site, job)
    leader = parts.leader(site)
    with containers.stopped(leader):
        parts.leader_after(site, leader)
        between = [submit(site, user, 5) for user in ("jemma", "joe")]
        for job in between:
            site.wait_job(job, "succeeded")
    before_it = parts.restarts(leader)
    ended = site.access.wait(parts.path_of(leader), lambda it: parts.restarts(it) > before_it)
    (container,) = ended["status"]["containerStatuses"]
    assert container["lastState"]["terminated"]["exitCode"] == LOST_STATUS
    for job in before:
        site.wait_job(job, "succeeded")
    ran_once(record, *before, *between)
    parts.wait_whole(site, "scheduler", 2)


def test_notebooks_and_jobs_survive_hub_kill(site: Site, record: Record) -> None:
    notebook = site.start_notebook("susan", gpus=1)
    first = submit(site, "susan", 40)
    pod = running(site, first)
    (hub,) = parts.pods_of(site, "hub")
    site.token("joe")  # created by the Hub
    containers.kill(hub)
    second = submit(site, "joe", 5)
    site.access.wait(parts.path_of(hub), lambda it: parts.restarts(it) > parts.restarts(hub))
    parts.wait_whole(site, "hub")
    site.wait_ready()
    assert lives(site.notebook("susan")) == lives(notebook)
    assert lives(running(site, first)) == lives(pod)
    page = direct.get(
        f"{site.url}/user/susan/api/status",
        headers={"Authorization": f"token {site.token('susan')}"},
        timeout=30,
    )
    assert page.status_code == 200, page.text
    for job in (first, second):
        site.wait_job(job, "succeeded")
    ran_once(record, first, second)
    site.stop_notebook("susan")
    leases = f"/apis/benchpool.io/v1/namespaces/{site.workspace}/buildleases"
    until(lambda: not site.access.get(leases)["items"])


def replace_proxy(site: Site, lose: Callable[[Object], object]) -> None:
    """Lose the proxy's process or pod, and wait until another is ready."""
    (former,) = parts.pods_of(site, "proxy")
    lose(former)
    until(lambda: parts.is_replaced(site, former), "the proxy is there anew")


def test_restarted_proxy_gets_all_routes(site: Site) -> None:
    """The Hub itself checks for lost routes only every five minutes."""
    notebook = site.start_notebook("susan", gpus=1)
    address = f"{site.url}/user/susan/api/status"
    headers = {"Authorization": f"token {site.token('susan')}"}

    def is_there() -> bool:
        try:
            return direct.get(address, headers=headers, timeout=30).status_code == 200
        except httpx.HTTPError:
            return False

    until(is_there, "the notebook is reached")
    for lose in (containers.kill, lambda pod: site.access.delete(parts.path_of(pod))):
        job = submit(site, "joe", 30)
        with ThreadPoolExecutor() as threads, site.client("joe", patience_s=150) as client:
            followed = threads.submit(client.wait, job)
            replace_proxy(site, lose)
            until(is_there, "the notebook is reached again")
            submit(site, "jemma", 1)
            assert followed.result(300).state is State.SUCCEEDED
    assert lives(site.notebook("susan")) == lives(notebook)
    site.stop_notebook("susan")


def test_jobs_survive_two_minute_api_server_outage(
    site: Site, record: Record, cluster_use: Use
) -> None:
    cluster, access = site.cluster, site.access
    with cluster_use.alone() as ours:
        if not ours:
            pytest.skip("somebody else uses the cluster now")
        notebook = site.start_notebook("jemma", gpus=1)
        long, short = submit(site, "susan", 180), submit(site, "joe", 30)
        long_pod, short_pod = running(site, long), running(site, short)
        # The controllers are killed too. Otherwise they would give both nodes up after the restart,
        # before the nodes can report: the limit here is 8 s instead of 5 min.
        for part in ("kube-controller-manager", "kube-apiserver"):
            cluster.processes.kill(part)
        try:
            time.sleep(AWAY_S)  # the outage of this length is under test
        finally:
            for part in ("kube-apiserver", "kube-controller-manager"):
                cluster.plane.restart(part)
        for node in cluster.nodes:
            access.wait(f"{kwok_nodes.NODES}/{node.name}", kwok_nodes.is_ready)
        site.wait_job(short, "succeeded")
        (ended,) = site.workers(short)
        assert lives(ended) == lives(short_pod)
        site.wait_ready()
        later = submit(site, "joe", 5)
        assert lives(running(site, long)) == lives(long_pod)
        assert lives(site.notebook("jemma")) == lives(notebook)
        site.stop_notebook("jemma")  # the Hub notices that its pod is gone, and
        site.start_notebook("jemma", gpus=1)  # that the next one is ready
        for job in (later, long):
            site.wait_job(job, "succeeded")
        ran_once(record, long, short, later)
        for part, count in (("hub", 1), ("proxy", 1), ("scheduler", 2)):
            parts.wait_whole(site, part, count)
        site.stop_notebook("jemma")
