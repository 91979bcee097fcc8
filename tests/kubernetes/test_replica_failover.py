"""One replica leads; another takes over after its loss, and nothing starts twice."""

from __future__ import annotations

import signal
from collections import Counter
from typing import Any

import pytest

from benchpool_cluster.access import Access
from benchpool_cluster.control_plane import ControlPlane
from benchpool_scheduler.contract import CommandEntry, JobSubmission, State
from benchpool_scheduler.errors import BenchpoolError
from benchpool_support import direct
from benchpool_support.replicas import Replica, Site
from benchpool_support.waiting import until

pytestmark = pytest.mark.kubernetes

LOST_STATUS = 3


def command(**more: Any) -> JobSubmission:
    return JobSubmission(entry=CommandEntry(["python3", "-m", "train"]), **more)


def attempts(access: Access, site: Site) -> Counter[str]:
    """Return the number of Jobs that each job has had, according to the API server."""
    path = f"/apis/batch/v1/namespaces/{site.namespace}/jobs"
    return Counter(
        one["metadata"]["labels"]["benchpool.io/job"] for one in access.get(path)["items"]
    )


def began(access: Access, site: Site) -> Counter[str]:
    """Return the number of pods of each job that have been bound to a node."""
    items = access.get(f"/api/v1/namespaces/{site.namespace}/pods")["items"]
    return Counter(
        one["metadata"]["labels"]["benchpool.io/job"] for one in items if "nodeName" in one["spec"]
    )


def holder(access: Access, site: Site) -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{site.namespace}/leases/benchpool-scheduler"
    return str((access.find(path) or {}).get("spec", {}).get("holderIdentity", ""))


def all_running(replica: Replica, jobs: list[str]) -> None:
    def look() -> bool:
        states = {job.id: job.state for job in replica.client("ada").jobs(all_=True)}
        return all(states.get(job) is State.RUNNING for job in jobs)

    until(look)


@pytest.fixture
def both(site: Site, nodes: tuple[str, ...]) -> tuple[Replica, Replica]:
    """Return the leader and a standby replica."""
    return leader_and_standby(site)


def leader_and_standby(site: Site) -> tuple[Replica, Replica]:
    leader = site.started("first")
    standby = site.start("second")
    until(standby.answers)
    until(standby.serves)
    return leader, standby


def test_standby_forwards_requests(
    access: Access, site: Site, both: tuple[Replica, Replica]
) -> None:
    leader, standby = both
    assert holder(access, site).startswith("first-")
    job = standby.client("susan").submit(command())
    assert leader.client("susan").job(job.id).job.id == job.id
    assert [it.id for it in standby.client("susan").jobs()] == [job.id]
    unknown = direct.get(f"{standby.url}/api/v1/jobs")
    assert unknown.status_code == 401
    news = standby.client("susan").events(after=0)
    assert next(news) is not None
    assert (leader.leads(), standby.leads()) == (True, False)


def test_orderly_leader_exit_hands_over_without_delay(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    # A long lease: a standby that waited for its end would be noticed on any machine.
    site.more = {**site.more, "BENCHPOOL_LEADER_LEASE_S": "60"}
    leader, standby = leader_and_standby(site)
    job = leader.client("susan").submit(command())
    all_running(leader, [job.id])
    assert leader.end() == 0
    until(standby.leads)
    all_running(standby, [job.id])
    assert attempts(access, site) == {job.id: 1}


def test_resumed_leader_exits_and_starts_nothing_twice(
    access: Access, site: Site, both: tuple[Replica, Replica]
) -> None:
    leader, standby = both
    before = [leader.client("susan").submit(command()).id for _ in range(4)]
    leader.send(signal.SIGSTOP)
    until(standby.leads)
    between = [standby.client("susan").submit(command()).id for _ in range(4)]
    all_running(standby, [*before, *between])
    leader.send(signal.SIGCONT)
    assert leader.ended() == LOST_STATUS
    again = site.started("first-again")
    assert not again.leads()
    every = [*before, *between]
    # A write that was pending at the stop may still happen afterwards. Its unfinished objects stay
    # behind a gate and are removed.
    until(lambda: began(access, site) == dict.fromkeys(every, 1))


def test_leader_kills_do_not_lose_or_duplicate_jobs(
    access: Access, site: Site, both: tuple[Replica, Replica]
) -> None:
    leader, standby = both
    accepted: list[str] = []
    for turn in range(3):
        accepted += [leader.client("susan").submit(command()).id for _ in range(3)]
        leader.kill()
        until(standby.leads)
        leader, standby = standby, site.start(f"turn-{turn}")
        until(standby.serves)
    all_running(leader, accepted)
    assert began(access, site) == dict.fromkeys(accepted, 1)
    # Each leader continues the audit trail of the previous leader.
    sent = leader.client("ada").audit(action="submit").records
    assert [it.target for it in reversed(sent)] == accepted
    assert leader.client("ada").verify_audit().ok


def test_jobs_survive_api_server_outage(
    plane: ControlPlane, access: Access, site: Site, both: tuple[Replica, Replica]
) -> None:
    leader, standby = both
    accepted = [leader.client("susan").submit(command()).id for _ in range(3)]
    all_running(leader, accepted)
    plane.processes.freeze("kube-apiserver")
    try:
        assert leader.ended() == LOST_STATUS
        restarted = site.start("restarted")
        until(restarted.answers)
        assert standby.answers()
        answer = direct.get(f"{standby.url}/api/v1/jobs", timeout=60)
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "2"
        assert answer.json()["error"]["code"] == "standing-by"
    finally:
        plane.processes.thaw("kube-apiserver")
    until(lambda: standby.leads() or restarted.leads())
    until(restarted.serves)
    all_running(restarted, accepted)
    later = submitted(restarted)
    all_running(restarted, [*accepted, later])
    assert began(access, site) == dict.fromkeys([*accepted, later], 1)


def submitted(replica: Replica) -> str:
    """Submit a job, with retries while the lease moves between replicas."""

    def once() -> str:
        try:
            return replica.client("susan").submit(command(key="later")).id
        except BenchpoolError:
            return ""

    return until(once)
