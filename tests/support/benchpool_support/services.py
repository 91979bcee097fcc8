"""Services for tests, with scripted programs and requests."""

from __future__ import annotations

import asyncio

from benchpool_scheduler.contract.serving import PoolService, ServiceState
from benchpool_scheduler.service import Pool, ServiceFlow
from benchpool_scheduler.service.jobs.serving.readiness import ReplicaPlace
from benchpool_support.pools import ADMIN
from benchpool_support.waiting import until_async


class Requests:
    """Scripted traffic.

    Attributes:
        now: Traffic of every service.
        of_replica: Requests in flight by the job of a replica.
        answered: Event that is set when a replica has answered its requests.
    """

    def __init__(self) -> None:
        self.now = ServiceFlow()
        self.of_replica: dict[str, int] = {}
        self.answered = asyncio.Event()

    def flow(self, name: str) -> ServiceFlow:
        """Return the traffic of a service."""
        return self.now

    def in_flight(self, name: str, replica: str) -> int:
        """Return the number of requests that a replica has not answered."""
        return self.of_replica.get(replica, 0)

    async def drained(self, replica: str) -> None:
        """Wait until a replica has answered its requests."""
        if self.of_replica.get(replica, 0):
            await self.answered.wait()


class Programs:
    """Scripted answers of the programs on ports.

    Attributes:
        all_answer: Whether all ports answer.
        asked: Each health check.
        proceed: Event that ends the pauses between checks.
        hosts: Host of each check.
    """

    def __init__(self) -> None:
        self.all_answer = True
        self.asked: list[tuple[int, str]] = []
        self.hosts: list[str] = []
        self.proceed = asyncio.Event()

    async def ask(self, place: ReplicaPlace) -> bool:
        """Return whether a replica answers."""
        self.asked.append((place.port, place.path))
        self.hosts.append(place.host)
        return self.all_answer

    async def pause(self, seconds: float) -> None:
        """Wait until the test allows the next check."""
        await self.proceed.wait()
        await asyncio.sleep(0)


def served_by(pool: Pool, programs: Programs, requests: Requests) -> Pool:
    """Return a pool whose replicas have these scripted answers and requests."""
    pool.services.views.table.watch.ask = programs.ask
    pool.services.views.table.watch.pause = programs.pause
    pool.services.views.table.counts = requests
    return pool


async def until_service(
    pool: Pool, name: str, state: ServiceState, replicas: int = 1
) -> PoolService:
    """Wait until a service is in this state with this total number of replicas."""

    def look() -> PoolService:
        pool.services.runner.want()
        return pool.services.show(ADMIN, name)

    return await until_async(
        look,
        f"service {name} is {state} with {replicas} replicas",
        holds=lambda now: now.state is state and len(now.replicas) == replicas,
    )
