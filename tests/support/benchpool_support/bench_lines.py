"""A pool whose benches lend their idle GPUs, with requests in the bench queue."""

from __future__ import annotations

import asyncio

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract import (
    Lease,
    LeaseRequest,
    LineAnswer,
    LinePlace,
    LineRequest,
)
from benchpool_scheduler.service import Pool
from benchpool_support.pools import (
    HUB,
    story,
)

LENDING = """
version: 1
build: {users: {susan: 2, jemma: 1, zoe: 2}, reserve: 2, oversubscribe: true, lend_idle: true}
projects: [{name: p, quota: 1, members: [joe]}]
policy: {grace_s: 20}
"""


def lending() -> Configuration:
    return story(LENDING)


def line(user: str = "susan", server: str = "", gpus: int = 1, spawn: str = "1") -> LineRequest:
    return LineRequest(lease=LeaseRequest(user=user, server=server, spawn=spawn, gpus=gpus))


def place(answer: LineAnswer) -> LinePlace:
    assert answer.lease is None
    assert answer.place is not None
    return answer.place


def lease(answer: LineAnswer) -> Lease:
    assert answer.place is None
    assert answer.lease is not None
    return answer.lease


async def asked_until_held(pool: Pool, request: LineRequest) -> Lease:
    held = LineRequest(lease=request.lease, hold_s=10)
    async with asyncio.timeout(120):
        while (answer := await pool.benches.wait_in_line(HUB, held)).lease is None:
            pass
    return lease(answer)
