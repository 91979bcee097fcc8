"""Services whose replicas have their own addresses, like pods of a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.app.pool_services import PoolServices
from benchpool_scheduler.contract import CommandEntry, JobSubmission, State
from benchpool_scheduler.contract.serving import PoolService, ServiceRequest, ServiceState
from benchpool_scheduler.gate import Backend
from benchpool_scheduler.runtime import EndedBy, WorkerId
from benchpool_scheduler.service import Containers, Pool
from benchpool_scheduler.service.jobs.serving.replica_network import own_port
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import SUSAN, make_pool, opened, reached, story
from benchpool_support.scripted import STARTED, ScriptedRuntime, devices
from benchpool_support.services import Programs, Requests, served_by, until_service

COMMAND = ["serve", "--at={host}:{port}"]
SERVED = JobSubmission(entry=CommandEntry(COMMAND))
TEAM = """
version: 1
projects:
  - {name: vision, quota: 4, members: [susan, joe]}
"""
BRIEF = "policy: {grace_s: 3}\n"


class PodRuntime(ScriptedRuntime):
    """A runtime whose workers have addresses.

    Attributes:
        hosts: Addresses of workers; other workers get an address by the number of their attempt.
    """

    listen = "0.0.0.0"

    def __init__(self) -> None:
        super().__init__(devices(4))
        self.hosts: dict[WorkerId, str | None] = {}

    def host_of(self, worker: WorkerId) -> str | None:
        """Return the address of a worker."""
        return self.hosts.get(worker, f"10.1.{worker.attempt}.7")


@pytest.fixture
def runtime() -> PodRuntime:
    return PodRuntime()


@pytest.fixture
def programs() -> Programs:
    return Programs()


@pytest.fixture
def requests() -> Requests:
    return Requests()


@pytest.fixture
async def pool(
    tmp_path: Path, runtime: PodRuntime, programs: Programs, requests: Requests
) -> AsyncIterator[Pool]:
    made = make_pool(
        tmp_path,
        runtime=runtime,
        clock=FakeClock(),
        configuration=story(TEAM),
        containers=Containers(),
    )
    async with opened(served_by(made, programs, requests)) as pool:
        yield pool


def backends(pool: Pool) -> tuple[Backend, ...]:
    """Return the backends to which the gateway sends susan's requests."""
    return PoolServices(pool.services, FakeClock()).route("llm", SUSAN).backends


def worker_of(service: PoolService, attempt: int = 1) -> WorkerId:
    return WorkerId(service.replicas[0].job, attempt, 0)


async def test_replica_in_pod_is_reached_at_pod_address(
    pool: Pool, runtime: PodRuntime, programs: Programs
) -> None:
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED, readiness="/up"))
    service = await until_service(pool, "llm", ServiceState.READY)
    worker = worker_of(service)
    launch, port = runtime.launched[worker], own_port(worker.job)
    assert launch.argv == ("serve", f"--at=0.0.0.0:{port}")
    assert (launch.env["HOST"], launch.env["PORT"], launch.serves) == ("0.0.0.0", str(port), port)
    assert (programs.asked, programs.hosts) == ([(port, "/up")], ["10.1.1.7"])
    assert backends(pool) == (Backend(worker.job, "10.1.1.7", port),)


async def test_ordinary_job_has_no_serving_port(pool: Pool, runtime: PodRuntime) -> None:
    await pool.jobs.submit(SUSAN, SERVED)
    (worker,) = await runtime.until_launched(1)
    assert runtime.launched[worker].serves is None


async def test_unreachable_replica_text_names_listen_address(
    pool: Pool, runtime: PodRuntime, programs: Programs
) -> None:
    programs.all_answer = False
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED))
    (worker,) = await runtime.until_launched(1)
    await reached(pool, worker.job, State.RUNNING)
    starting = await until_service(pool, "llm", ServiceState.STARTING)
    assert starting.text == (
        "Its program has started and does not answer yet. It must listen on 0.0.0.0, "
        "which the variable HOST contains."
    )
    assert backends(pool) == ()


async def test_replica_without_address_gets_no_requests(
    pool: Pool, runtime: PodRuntime, programs: Programs
) -> None:
    runtime.start_at_once = False
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED))
    (worker,) = await runtime.until_launched(1)
    runtime.hosts[worker] = None
    runtime.begin(worker, STARTED)
    await reached(pool, worker.job, State.RUNNING)
    await until_service(pool, "llm", ServiceState.STARTING)
    assert programs.asked == []
    runtime.hosts[worker] = "10.1.9.9"
    await until_service(pool, "llm", ServiceState.READY)
    assert [it.host for it in backends(pool)] == ["10.1.9.9"]


async def test_replica_of_lost_node_resumes_at_new_address(
    pool: Pool, runtime: PodRuntime, programs: Programs
) -> None:
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED))
    first = await until_service(pool, "llm", ServiceState.READY)
    runtime.end(worker_of(first), None, EndedBy.LOST, text="its node does not answer")
    await runtime.until_launched(2)
    again = await until_service(pool, "llm", ServiceState.READY)
    assert runtime.launched[worker_of(again, 2)].serves == own_port(first.replicas[0].job)
    assert (again.replicas[0].job, again.failures) == (first.replicas[0].job, 0)
    assert [it.host for it in backends(pool)] == ["10.1.2.7"]
    assert programs.hosts == ["10.1.1.7", "10.1.2.7"]


async def test_pod_replicas_share_port_and_overlap_on_restart(
    pool: Pool, runtime: PodRuntime, requests: Requests
) -> None:
    asked = ServiceRequest("llm", SERVED, min_replicas=2, max_replicas=2, port=8000)
    await pool.services.serve(SUSAN, asked)
    service = await until_service(pool, "llm", ServiceState.READY, replicas=2)
    assert {launch.env["PORT"] for launch in runtime.launched.values()} == {"8000"}
    await pool.services.serve(SUSAN, ServiceRequest("other", SERVED, port=8000))
    requests.of_replica = {it.job: 1 for it in service.replicas}
    await pool.services.restart(SUSAN, "llm")
    grown = await until_service(pool, "llm", ServiceState.READY, replicas=3)
    assert [it.version for it in grown.replicas] == [1, 1, 2]
    assert runtime.notices == []


async def test_paused_replica_finishes_open_requests_first(
    pool: Pool, runtime: PodRuntime, requests: Requests
) -> None:
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED))
    service = await until_service(pool, "llm", ServiceState.READY)
    job = service.replicas[0].job
    requests.of_replica[job] = 1
    paused = await pool.jobs.act(SUSAN, job, "pause")
    assert (paused.state, backends(pool)) == (State.PAUSING, ())
    await pool.services.runner.look()
    assert runtime.notices == [], "it still has a request"
    requests.answered.set()
    ((worker, notice),) = await runtime.until_noticed(1)
    grace_s = pool.observed.now.configuration.policy.grace_s
    assert (worker.job, notice.kind) == (job, "pause")
    assert 0 < notice.grace_s < grace_s


async def test_open_requests_delay_pause_within_grace(
    pool: Pool, runtime: PodRuntime, requests: Requests
) -> None:
    pool.observed.put(pool.observed.now.with_configuration(story(TEAM + BRIEF)))
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED))
    service = await until_service(pool, "llm", ServiceState.READY)
    requests.of_replica[service.replicas[0].job] = 1
    await pool.jobs.act(SUSAN, service.replicas[0].job, "pause")
    ((_, notice),) = await runtime.until_noticed(1)
    assert notice.grace_s <= 1
