"""Services: replicas are jobs without end that are replaced, sleep and restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchpool_scheduler.contract import CommandEntry, JobSubmission, State
from benchpool_scheduler.contract.serving import (
    PoolService,
    ServiceAccess,
    ServiceRequest,
    ServicesQuery,
    ServiceState,
)
from benchpool_scheduler.errors import Forbidden, InvalidInput, NotFound, Refused
from benchpool_scheduler.hub import HubUser
from benchpool_scheduler.runtime import EndedBy, Notice, WorkerId
from benchpool_scheduler.service import Caller, Pool, ServiceFlow
from benchpool_scheduler.service.jobs.serving.service_runner import UNOWNED_S
from benchpool_scheduler.telemetry.samples import GpuSample, HeldSample, Holder
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, JOE, SUSAN, make_pool, opened, reached, story
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.services import Programs, Requests, served_by, until_service
from benchpool_support.waiting import until_async

SERVED = JobSubmission(entry=CommandEntry(["serve", "--port={port}"]))
TEAM = """
version: 1
projects:
  - {name: vision, quota: 2, members: [susan, joe], leads: [lea]}
  - {name: other, quota: 2, members: [jemma]}
"""
LEA, JEMMA = Caller("lea"), Caller("jemma", groups=frozenset({"guests"}))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def runtime() -> ScriptedRuntime:
    return ScriptedRuntime(devices(4))


@pytest.fixture
def programs() -> Programs:
    return Programs()


@pytest.fixture
def requests() -> Requests:
    return Requests()


@pytest.fixture
async def pool(
    tmp_path: Path,
    runtime: ScriptedRuntime,
    clock: FakeClock,
    programs: Programs,
    requests: Requests,
) -> AsyncIterator[Pool]:
    made = make_pool(tmp_path, runtime=runtime, clock=clock, configuration=story(TEAM))
    async with opened(served_by(made, programs, requests)) as pool:
        yield pool


async def until_stop_notice(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock, number: int = 1
) -> tuple[WorkerId, Notice]:
    """Let time pass until this number of workers got a stop; return the last of them."""

    def look() -> bool:
        if len(runtime.notices) >= number:
            return True
        clock.pass_s(1)
        pool.services.runner.want()
        return False

    await until_async(look, f"{number} workers were told to end")
    return runtime.notices[number - 1]


def worker_of(service: PoolService, number: int = 0) -> WorkerId:
    return WorkerId(service.replicas[number].job, 1, 0)


async def test_replica_is_ready_once_its_path_answers(
    pool: Pool, runtime: ScriptedRuntime, programs: Programs
) -> None:
    programs.all_answer = False
    begun = await pool.services.serve(
        SUSAN, ServiceRequest("llm", SERVED, readiness="/health?deep=1")
    )
    assert begun.url == "http://pool.test/services/benchpool/s/llm/"
    (worker,) = await runtime.until_launched(1)
    await reached(pool, worker.job, State.RUNNING)
    starting = await until_service(pool, "llm", ServiceState.STARTING)
    assert starting.text == "Its program has started and does not answer yet."
    launch = runtime.launched[worker]
    port = int(launch.env["PORT"])
    assert launch.argv == ("serve", f"--port={port}")
    assert launch.env["SERVICE_PREFIX"] == "/services/benchpool/s/llm/"
    job = pool.jobs.detail(SUSAN, worker.job).job
    assert (job.name, job.priority, job.project) == ("llm v1", 550, "vision")
    programs.all_answer = True
    programs.proceed.set()
    ready = await until_service(pool, "llm", ServiceState.READY)
    assert ready.text == "1 replica answers."
    assert set(programs.asked) == {(port, "/health?deep=1")}
    assert ready.replicas[0].phase == "ready"


async def test_replica_end_counts_as_failure_with_growing_pauses(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED))
    for number, pause_s in ((1, 1), (2, 2), (3, 4)):
        service = await until_service(pool, "llm", ServiceState.READY)
        runtime.end(worker_of(service), 0, EndedBy.ITSELF, at=clock.now())
        failed = await until_service(pool, "llm", ServiceState.FAILED, replicas=0)
        assert failed.failures == number
        assert "exit code 0, but a replica must keep running." in failed.text
        assert failed.text.endswith(f"Another starts in {pause_s} s.")
        clock.pass_s(pause_s)
    await until_service(pool, "llm", ServiceState.READY)
    assert len({launch.env["PORT"] for launch in runtime.launched.values()}) >= 1
    assert len(runtime.launched) == 4


async def test_idle_service_sleeps_and_wakes_unless_stopped(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock, requests: Requests
) -> None:
    asked = ServiceRequest("llm", SERVED, min_replicas=0, idle_s=600)
    await pool.services.serve(SUSAN, asked)
    service = await until_service(pool, "llm", ServiceState.READY)
    clock.pass_s(600)
    leaving = await until_service(pool, "llm", ServiceState.ASLEEP)
    assert leaving.text == (
        "Asleep: It received no request for its idle time. The next request wakes it."
    )
    noticed, notice = await until_stop_notice(pool, runtime, clock)
    assert notice.text == "Its service sleeps: the next request wakes it."
    runtime.end(noticed, 0, EndedBy.NOTICE, at=clock.now())
    await until_service(pool, "llm", ServiceState.ASLEEP, replicas=0)
    pool.services.runner.asked("llm")
    service = await until_service(pool, "llm", ServiceState.READY)
    await pool.services.stop(SUSAN, "llm")
    pool.services.runner.asked("llm")
    stopped = await until_service(pool, "llm", ServiceState.STOPPED)
    assert stopped.text == "Stopped: susan stopped it. No request wakes it."
    await until_stop_notice(pool, runtime, clock, 2)
    runtime.end(worker_of(service), 0, EndedBy.NOTICE, at=clock.now())
    await until_service(pool, "llm", ServiceState.STOPPED, replicas=0)
    await pool.services.wake(SUSAN, "llm")
    await until_service(pool, "llm", ServiceState.READY)
    assert [it.text for it in pool.services.show(SUSAN, "llm").events] == [
        "susan woke it.",
        "susan stopped it.",
        "A request woke it.",
        "It received no request for its idle time.",
        "susan started it.",
    ]


async def test_queued_service_keeps_its_place_longer_than_idle_time(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    held = JobSubmission(entry=CommandEntry(["train"]), gpus=2, preemptible=False)
    for caller in (SUSAN, JEMMA):
        job = await pool.jobs.submit(caller, held)
        await reached(pool, job.id, State.RUNNING)
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED, min_replicas=0, idle_s=600))
    queued = await until_service(pool, "llm", ServiceState.PAUSED)
    clock.pass_s(6000)
    await pool.services.runner.look()
    still = pool.services.show(SUSAN, "llm")
    assert (still.state, still.replicas) == (ServiceState.PAUSED, queued.replicas)
    assert "It waits for GPUs of the pool" in still.text


async def test_new_version_is_ready_before_old_one_stops(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock, requests: Requests
) -> None:
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED))
    first = await until_service(pool, "llm", ServiceState.READY)
    requests.of_replica[first.replicas[0].job] = 1
    with pytest.raises(Refused, match="Use --update"):
        await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED, readiness="/up"))
    newer = ServiceRequest("llm", SERVED, readiness="/up", update=True)
    assert (await pool.services.serve(SUSAN, newer)).version == 2
    await until_service(pool, "llm", ServiceState.READY, replicas=2)
    await until_async(
        lambda: pool.services.show(SUSAN, "llm"),
        holds=lambda now: [it.phase for it in now.replicas] == ["leaving", "ready"],
    )
    clock.pass_s(30)
    pool.services.runner.want()
    await pool.services.runner.carry_on("llm")
    assert runtime.notices == [], "it still has a request"
    requests.of_replica.clear()
    noticed, notice = await until_stop_notice(pool, runtime, clock)
    assert noticed == worker_of(first)
    assert notice.text == "A newer version of its service has taken over."
    runtime.end(noticed, 0, EndedBy.NOTICE, at=clock.now())
    last = await until_service(pool, "llm", ServiceState.READY)
    assert (last.version, last.failures) == (2, 0)
    same = await pool.services.serve(SUSAN, newer)
    assert same.version == 2, "the same again changes nothing"


async def test_service_events_and_gpu_use_require_right_to_change(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED, access=ServiceAccess.EVERYONE))
    service = await until_service(pool, "llm", ServiceState.READY)
    runtime.end(worker_of(service), 3, EndedBy.ITSELF, at=clock.now())
    failed = await until_service(pool, "llm", ServiceState.FAILED, replicas=0)
    assert failed.events[0].text.startswith(
        f"Replica {service.replicas[0].job[:8]} of version 1 ended: "
    )
    await pool.services.restart(SUSAN, "llm")
    ready = await until_service(pool, "llm", ServiceState.READY)
    assert ready.events[0].text == "susan restarted it, as version 2."
    (replica,) = ready.replicas
    assert (replica.gpu_activity, replica.gpu_memory_used_gib) == (None, None)
    sample = GpuSample(at=clock.now(), span_s=5, gpu="GPU-0", activity=0.25, memory_used_gib=3.0)
    holder = Holder(job=replica.job, attempt=1, worker=0, user="susan", project="vision")
    pool.metering.live.see([HeldSample(sample, holder), HeldSample(replace(sample, gpu="GPU-1"))])
    (replica,) = pool.services.show(SUSAN, "llm").replicas
    assert (replica.gpu_activity, replica.gpu_memory_used_gib) == (0.25, 3.0)
    shown = pool.services.show(JEMMA, "llm")
    assert (shown.replicas, shown.events) == ([], [])


@pytest.mark.parametrize("preemptible", [True, False])
async def test_replicas_scale_with_requests_and_run_beyond_quota_if_preemptible(
    pool: Pool, requests: Requests, *, preemptible: bool
) -> None:
    served = JobSubmission(entry=SERVED.entry, preemptible=preemptible)
    await pool.services.serve(SUSAN, ServiceRequest("llm", served, max_replicas=3, in_flight=2))
    await until_service(pool, "llm", ServiceState.READY)
    requests.now = ServiceFlow(in_flight=5, last_request_at=0.0)
    grown = await until_service(pool, "llm", ServiceState.READY, replicas=3)
    assert grown.wanted == 3
    ready = 3 if preemptible else 2  # the quota is 2 of 4 GPUs
    grown = await until_async(
        lambda: pool.services.show(SUSAN, "llm"),
        holds=lambda now: sum(it.phase == "ready" for it in now.replicas) == ready,
    )
    assert ("Another replica waits" in grown.text) is not preemptible


async def test_replicas_survive_scheduler_restart(
    tmp_path: Path,
    runtime: ScriptedRuntime,
    clock: FakeClock,
    programs: Programs,
    requests: Requests,
) -> None:
    for _ in range(2):
        made = make_pool(tmp_path, runtime=runtime, clock=clock, configuration=story(TEAM))
        async with opened(served_by(made, programs, requests)) as pool:
            if not pool.services.book.all():
                await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED))
            await until_service(pool, "llm", ServiceState.READY)
    assert len(runtime.launched) == 1


async def test_service_access_controls_visibility_and_changes(pool: Pool) -> None:
    async def opens(access: ServiceAccess, group: str | None = None) -> list[str]:
        asked = ServiceRequest("llm", SERVED, access=access, group=group, update=True)
        await pool.services.serve(SUSAN, asked)
        found = []
        for caller in (SUSAN, JOE, LEA, ADMIN, JEMMA):
            listed = pool.services.select(caller, ServicesQuery(all=True))
            try:
                pool.services.show(caller, "llm")
            except NotFound:
                assert listed == []
            else:
                assert [it.name for it in listed] == ["llm"]
                found.append(caller.name)
        return found

    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED))
    assert await opens(ServiceAccess.OWNER) == ["susan", "lea", "ada"]
    assert await opens(ServiceAccess.PROJECT) == ["susan", "joe", "lea", "ada"]
    assert await opens(ServiceAccess.GROUP, "guests") == ["susan", "lea", "ada", "jemma"]
    assert await opens(ServiceAccess.EVERYONE) == ["susan", "joe", "lea", "ada", "jemma"]
    await until_service(pool, "llm", ServiceState.READY)
    assert pool.services.show(JEMMA, "llm").replicas == []
    assert not pool.services.show(JEMMA, "llm").may_change
    for change in (pool.services.sleep, pool.services.remove, pool.services.restart):
        with pytest.raises(Forbidden, match="you may open it"):
            await change(JEMMA, "llm")
    with pytest.raises(Refused, match="taken by another user's service"):
        await pool.services.serve(JEMMA, ServiceRequest("llm", SERVED, update=True))
    with pytest.raises(Forbidden, match="only susan may replace it"):
        await pool.services.serve(LEA, ServiceRequest("llm", SERVED, update=True))
    assert (await pool.services.stop(LEA, "llm")).state is ServiceState.STOPPED
    with pytest.raises(InvalidInput, match="This service belongs to susan, who is shown"):
        await pool.services.remove(ADMIN, "llm")
    await pool.services.wake(ADMIN, "llm")
    with pytest.raises(InvalidInput, match="--reason"):
        await pool.services.stop(ADMIN, "llm")
    stopped = await pool.services.stop(ADMIN, "llm", "it answers  nobody")
    assert stopped.text.startswith("Stopped: ada stopped it: it answers")


async def test_service_of_unknown_owner_stops(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED))
    await until_service(pool, "llm", ServiceState.READY)
    pool.observed.put(pool.observed.now.with_users((HubUser("joe"),)))
    await pool.services.runner.look()
    assert pool.services.show(ADMIN, "llm").state is ServiceState.READY, "its list may be old"
    clock.pass_s(UNOWNED_S)
    stopped = await until_service(pool, "llm", ServiceState.STOPPED)
    assert stopped.text == "Stopped: The Hub no longer knows susan. No request wakes it."
    await until_stop_notice(pool, runtime, clock)


async def test_removed_service_stops_replicas_immediately(
    pool: Pool, runtime: ScriptedRuntime, requests: Requests
) -> None:
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED))
    service = await until_service(pool, "llm", ServiceState.READY)
    requests.of_replica[service.replicas[0].job] = 1
    await pool.services.remove(SUSAN, "llm")
    ((noticed, _),) = await runtime.until_noticed(1)
    assert noticed == worker_of(service)
    with pytest.raises(NotFound):
        pool.services.show(SUSAN, "llm")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (ServiceRequest("a", JobSubmission(entry=SERVED.entry, workers=2)), "one worker, not 2"),
        (ServiceRequest("a", JobSubmission(entry=SERVED.entry, time_limit_s=60)), "has no end"),
        (ServiceRequest("a", SERVED, access=ServiceAccess.GROUP), "--access group:NAME"),
        (ServiceRequest("a", SERVED, min_replicas=3, max_replicas=2), "Raise --max"),
        (ServiceRequest("a", SERVED, max_replicas=2, port=8000), "PORT"),
    ],
)
async def test_invalid_service_request_is_refused(
    pool: Pool, asked: ServiceRequest, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        await pool.services.serve(SUSAN, asked)
    assert pool.services.select(SUSAN, ServicesQuery()) == []


async def test_service_port_is_unique_and_freed_before_restart(
    pool: Pool, runtime: ScriptedRuntime, clock: FakeClock
) -> None:
    await pool.services.serve(SUSAN, ServiceRequest("one", SERVED, port=8000))
    with pytest.raises(Refused, match="Another service listens on port 8000"):
        await pool.services.serve(SUSAN, ServiceRequest("two", SERVED, port=8000))
    service = await until_service(pool, "one", ServiceState.READY)
    assert {launch.env["PORT"] for launch in runtime.launched.values()} == {"8000"}
    await pool.services.restart(SUSAN, "one")
    await until_stop_notice(pool, runtime, clock)
    assert len(runtime.launched) == 1
    runtime.end(worker_of(service), 0, EndedBy.NOTICE, at=clock.now())
    await runtime.until_launched(2)


async def test_replica_within_quota_preempts_training_of_its_project(
    pool: Pool, runtime: ScriptedRuntime
) -> None:
    training = [
        await pool.jobs.submit(SUSAN, JobSubmission(entry=CommandEntry(["train"])))
        for _ in range(4)
    ]
    await runtime.until_launched(4)
    for job in training:
        await reached(pool, job.id, State.RUNNING)
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED))
    ((noticed, notice),) = await runtime.until_noticed(1)
    assert noticed.job in {job.id for job in training}
    assert notice.kind == "pause"
