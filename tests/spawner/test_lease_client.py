"""The lease client retries while the scheduler restarts and loses no lease."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from benchpool_scheduler.client import Credentials
from benchpool_scheduler.contract import LeaseRequest
from benchpool_scheduler.errors import Refused, Unavailable
from benchpool_spawner.lease_client import LeaseClient

LEASE = {"id": "l1", "user": "susan", "server": "", "spawn": "s1", "gpus": ["GPU-0"],
         "since": "2026-11-21T00:00:00Z"}  # fmt: skip
ASK = LeaseRequest(user="susan", server="", spawn="s1", gpus=1)


class Scheduler:
    """The leases part of the scheduler's API, with scripted answers."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, Any] | str]] = []
        self.released: list[str] = []
        self.held: list[dict[str, Any]] = []
        self.asked = 0
        outer = self

        class Leases(RequestHandler):
            def get(self) -> None:
                self.finish(json.dumps(outer.held))

            def post(self) -> None:
                outer.asked += 1
                status, body = outer.answers.pop(0) if outer.answers else (201, LEASE)
                self.set_status(status)
                self.finish(body)

        class OneLease(RequestHandler):
            def delete(self, id_: str) -> None:
                outer.released.append(id_)
                self.set_status(204)

        base = "/services/benchpool/api/v1/leases"
        socket, port = bind_unused_port()
        self.server = HTTPServer(Application([(base, Leases), (base + "/(.*)", OneLease)]))
        self.server.add_socket(socket)
        self.credentials = Credentials(f"http://127.0.0.1:{port}/services/benchpool", "t")


@pytest.fixture
async def scheduler() -> AsyncIterator[Scheduler]:
    running = Scheduler()
    yield running
    running.server.stop()


async def test_unavailable_scheduler_is_retried(scheduler: Scheduler) -> None:
    scheduler.answers = [(503, "proxy page"), (503, "proxy page")]
    waits: list[int] = []
    lease = await LeaseClient(scheduler.credentials).reserve(ASK, lambda: waits.append(1))
    assert lease.gpus == ["GPU-0"]
    assert scheduler.asked == 3
    assert waits == [1]


async def test_standby_replica_is_retried(scheduler: Scheduler) -> None:
    body: dict[str, Any] = {
        "code": "standing-by",
        "message": "Another leads.",
        "field": None,
        "numbers": {},
    }
    scheduler.answers = [(503, {"error": body})]
    lease = await LeaseClient(scheduler.credentials).reserve(ASK, lambda: None)
    assert lease.gpus == ["GPU-0"]
    assert scheduler.asked == 2


async def test_refusal_is_not_retried(scheduler: Scheduler) -> None:
    error: dict[str, Any] = {
        "code": "build-quota",
        "message": "2 of 2 held.",
        "field": None,
        "numbers": {},
    }
    scheduler.answers = [(409, {"error": error})]
    with pytest.raises(Refused, match="2 of 2 held"):
        await LeaseClient(scheduler.credentials).reserve(ASK, lambda: None)
    assert scheduler.asked == 1


async def test_stale_lease_of_same_server_is_released(
    scheduler: Scheduler,
) -> None:
    error: dict[str, Any] = {
        "code": "build-quota",
        "message": "Full.",
        "field": None,
        "numbers": {},
    }
    scheduler.answers = [(409, {"error": error})]
    scheduler.held = [{**LEASE, "spawn": "old"}, {**LEASE, "id": "l2", "server": "other"}]
    lease = await LeaseClient(scheduler.credentials).reserve(ASK, lambda: None)
    assert lease.spawn == "s1"
    assert scheduler.released == ["l1"]


async def test_full_pool_is_not_retried(scheduler: Scheduler) -> None:
    error: dict[str, Any] = {
        "code": "build-full",
        "message": "No GPU is free.",
        "field": None,
        "numbers": {},
    }
    scheduler.answers = [(503, {"error": error})]
    with pytest.raises(Unavailable, match="No GPU is free"):
        await LeaseClient(scheduler.credentials).reserve(ASK, lambda: None)
    assert scheduler.asked == 1


async def test_retry_timeout_offers_server_without_gpu() -> None:
    unreachable = Credentials("http://127.0.0.1:9/services/benchpool", "t")
    with pytest.raises(Unavailable, match="Start with 0 GPUs"):
        await LeaseClient(unreachable, patience_s=0.3).reserve(ASK, lambda: None)


async def test_lost_lease_is_found_by_spawn(scheduler: Scheduler) -> None:
    scheduler.held = [LEASE, {**LEASE, "id": "l2", "spawn": "another"}]
    await LeaseClient(scheduler.credentials).release("susan", "s1", None, wait_s=5)
    assert scheduler.released == ["l1"]


async def test_slow_release_does_not_delay_server_stop() -> None:
    unreachable = Credentials("http://127.0.0.1:9/services/benchpool", "t")
    desk = LeaseClient(unreachable, patience_s=0.1)
    async with asyncio.timeout(120):
        await desk.release("susan", "s1", "l1", wait_s=0.2)
    await desk.released()


async def test_form_shows_problem_when_scheduler_is_down() -> None:
    advice = await LeaseClient(Credentials("http://127.0.0.1:9/x", "t")).advice("susan")
    assert advice.quota is None
    assert "does not answer" in str(advice.problem)
