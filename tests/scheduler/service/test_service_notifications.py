"""Users are notified once about a service whose replicas end repeatedly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import CommandEntry, JobSubmission, State
from benchpool_scheduler.contract.notifications import (
    NewAddress,
    NotificationChange,
    NotificationEvent,
)
from benchpool_scheduler.contract.serving import ServiceRequest, ServiceState
from benchpool_scheduler.hub import HubUser, StaticDirectory
from benchpool_scheduler.notifications import job_messages
from benchpool_scheduler.notifications.delivery_state import Subscription
from benchpool_scheduler.runtime import EndedBy, WorkerId
from benchpool_scheduler.service import Pool
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import SUSAN, make_pool, opened, reached
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.services import Programs, Requests, served_by, until_service
from benchpool_support.webhooks import Receiver, receiving

SERVED = JobSubmission(entry=CommandEntry(["serve"]))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def runtime() -> ScriptedRuntime:
    return ScriptedRuntime(devices(9))


@pytest.fixture
async def pool(tmp_path: Path, clock: FakeClock, runtime: ScriptedRuntime) -> AsyncIterator[Pool]:
    facts = {"kinds": ["https"], "hosts": ["127.0.0.1"]}
    (tmp_path / "notifications.yaml").write_text(json.dumps(facts))
    users = StaticDirectory((HubUser("susan"),))
    made = make_pool(tmp_path, runtime=runtime, clock=clock, directory=users)
    async with opened(served_by(made, Programs(), Requests())) as pool:
        yield pool


async def test_first_replica_failure_notifies_owner_once(
    pool: Pool, clock: FakeClock, runtime: ScriptedRuntime, receiver: Receiver
) -> None:
    await pool.notifier.change(
        SUSAN, NotificationChange(add=NewAddress(receiver.url, "a secret that nobody reads"))
    )
    # Without failure in the same moment, the event "started" would be sent separately.
    await pool.notifier.change(SUSAN, NotificationChange(events=[NotificationEvent.FAILED]))
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED))
    jobs = []
    for _ in range(3):
        service = await until_service(pool, "llm", ServiceState.READY)
        (replica,) = service.replicas
        jobs.append(replica.job)
        runtime.end(WorkerId(replica.job, 1, 0), 1, EndedBy.ITSELF, at=clock.now())
        await until_service(pool, "llm", ServiceState.FAILED, replicas=0)
        if len(jobs) == 1:
            pool.deliveries.seen(pool.observed.now)
            (first,) = await asyncio.to_thread(receiver.wait_for, 1)
            assert first.texts[0].startswith(f"Job llm v1 ({replica.job[:8]}) failed.")
        clock.pass_s(60)
    assert [pool.services.book.is_repeated(job) for job in jobs] == [False, True, True]
    assert [pool.deliveries.quiet(job) for job in jobs] == [False, True, True]


async def test_replica_ended_by_service_sends_no_notification(
    pool: Pool, clock: FakeClock, runtime: ScriptedRuntime
) -> None:
    await pool.services.serve(SUSAN, ServiceRequest("llm", SERVED))
    (replica,) = (await until_service(pool, "llm", ServiceState.READY)).replicas
    await pool.services.remove(SUSAN, "llm")
    await runtime.until_noticed(1)
    runtime.end(WorkerId(replica.job, 1, 0), 1, EndedBy.NOTICE, at=clock.now())
    await reached(pool, replica.job, State.CANCELLED)
    record = pool.ledger.job(replica.job)
    assert record is not None
    subscription = Subscription("susan", 0.0, events=tuple(NotificationEvent))
    assert list(job_messages.of_job(record, None, subscription, clock.now())) == []
