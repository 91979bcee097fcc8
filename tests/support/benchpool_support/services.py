"""Services for tests: programs that answer and requests that come as a test says it."""

from __future__ import annotations

import asyncio

from benchpool_scheduler.contract.serving import PoolService, ServiceState
from benchpool_scheduler.service import Pool, ServiceFlow
from benchpool_scheduler.service.jobs.serving.readiness import ReplicaPlace
from benchpool_support.pools import ADMIN
from benchpool_support.waiting import until_async


class Requests:
    """What comes in, as a test says it.

    Attributes:
        now: Of every service. ``of_replica``: requests in flight by the job of a replica.
        answered: Set when those are answered that a replica has.
    """

    def __init__(self) -> None:
        self.now = ServiceFlow()
        self.of_replica: dict[str, int] = {}
        self.answered = asyncio.Event()

    def flow(self, name: str) -> ServiceFlow:
        """Return what came in."""
        return self.now

    def in_flight(self, name: str, replica: str) -> int:
        """Return what a replica has not answered."""
        return self.of_replica.get(replica, 0)

    async def drained(self, replica: str) -> None:
        """Wait until a replica has answered."""
        if self.of_replica.get(replica, 0):
            await self.answered.wait()


class Programs:
    """Which ports answer, as a test says it.

    Attributes:
        all_answer: Whether all do. ``asked``: each question. ``go_on``: ends the pauses between.
        hosts: Where each question went.
    """

    def __init__(self) -> None:
        self.all_answer = True
        self.asked: list[tuple[int, str]] = []
        self.hosts: list[str] = []
        self.go_on = asyncio.Event()

    async def ask(self, place: ReplicaPlace) -> bool:
        """Tell whether a replica answers."""
        self.asked.append((place.port, place.path))
        self.hosts.append(place.host)
        return self.all_answer

    async def pause(self, seconds: float) -> None:
        """Wait until the test lets questions go on."""
        await self.go_on.wait()
        await asyncio.sleep(0)


def served_by(pool: Pool, programs: Programs, requests: Requests) -> Pool:
    """Return a pool whose replicas answer, and are asked, as a test says it."""
    pool.services.views.table.watch.ask = programs.ask
    pool.services.views.table.watch.pause = programs.pause
    pool.services.views.table.counts = requests
    return pool


async def until_service(
    pool: Pool, name: str, state: ServiceState, replicas: int = 1
) -> PoolService:
    """Wait until a service is so, with so many replicas in all."""

    def look() -> PoolService:
        pool.services.runner.want()
        return pool.services.show(ADMIN, name)

    return await until_async(
        look,
        f"service {name} is {state} with {replicas} replicas",
        holds=lambda now: now.state is state and len(now.replicas) == replicas,
    )
