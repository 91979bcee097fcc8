"""Client for leases: requests build GPUs from the scheduler and releases them.

The scheduler counts and decides (R2). This module only transports requests and answers, waits while
the scheduler restarts, and makes sure that leases are released. It does not depend on the Hub.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from benchpool_scheduler.client import AsyncClient, Credentials
from benchpool_scheduler.contract import (
    Job,
    Lease,
    LeaseRequest,
    LinePlace,
    LineRequest,
    Quota,
    Status,
)
from benchpool_scheduler.contract.access import AccessRequest
from benchpool_scheduler.errors import BenchpoolError, NotFound, Refused, Unavailable
from benchpool_scheduler.phrases import duration

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 2.0
HOLD_S = 10.0
"""Long-poll time: the scheduler delays its answer while the queue is unchanged, in seconds."""

IN_LINE_PATIENCE_S = 180.0
"""Retry timeout of a queued start while the scheduler is down, in seconds. A replica takes over."""

ADVICE_TIMEOUT_S = 2.0
"""Timeout for the figures of a form, which are optional, in seconds."""

MOST_JOBS = 200
"""Maximum number of a user's jobs that the home page counts."""

# Other codes mean that the scheduler is down: it restarts, or another replica takes over.
_ANSWERS = ("build-", "line-")
"""Code prefixes of the scheduler's own answers about GPUs."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Data for the form: a user's quota and the pool. None if the scheduler does not answer."""

    quota: Quota | None
    status: Status | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Today:
    """Data of one user for the Hub's home page. All None if the scheduler does not answer.

    ``jobs`` are the unfinished jobs, newest first, at most ``MOST_JOBS``.
    ``access_requests`` are those that the user decides.
    """

    quota: Quota | None = None
    status: Status | None = None
    jobs: Sequence[Job] | None = None
    access_requests: Sequence[AccessRequest] = ()


class LeaseClient:
    """The Hub's single connection to the scheduler.

    Args:
        credentials: Address of the service, and the Hub's token for it.
        patience_s: Retry timeout while the scheduler is down, in seconds.
    """

    def __init__(self, credentials: Credentials, patience_s: float = 20.0) -> None:
        self._client = AsyncClient(credentials, keyed_patience_s=0.0)
        self._patience_s = patience_s
        self._releasing: set[asyncio.Task[None]] = set()

    async def reserve(self, request: LeaseRequest, on_wait: Callable[[], None]) -> Lease:
        """Reserve GPUs, all or none. ``on_wait`` is called once if the scheduler is down.

        Raises:
            BenchpoolError: The scheduler refuses, or does not answer.
        """
        deadline, pause = time.monotonic() + self._patience_s, FIRST_PAUSE_S
        while True:
            try:
                return await self._reserve_once(request)
            except Unavailable as failed:
                if not _is_away(failed):
                    raise
                if time.monotonic() + pause > deadline:
                    raise self._gave_up() from failed
            if pause == FIRST_PAUSE_S:
                on_wait()
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE_S, pause * 2)

    async def wait_in_line(
        self,
        request: LeaseRequest,
        on_wait: Callable[[], None],
        on_place: Callable[[LinePlace], None],
        longest_s: float,
    ) -> Lease:
        """Reserve GPUs, all or none, and wait in the queue while they are not available.

        Args:
            on_place: Called with each change of the queue position.
            longest_s: Maximum wait, in seconds.

        Raises:
            BenchpoolError: The scheduler refuses, or does not answer. It is Unavailable with code
                ``line-too-long`` after ``longest_s`` seconds.
        """
        begun, pause = time.monotonic(), FIRST_PAUSE_S
        answered, place = begun, None
        since: datetime | None = None
        while True:
            left = longest_s - (time.monotonic() - begun)
            if left <= 0:
                raise _waited_too_long(longest_s, place)
            ask = LineRequest(lease=request, since=since, hold_s=min(HOLD_S, left) if place else 0)
            try:
                answer = await self._client.wait_in_line(ask)
            except Unavailable as failed:
                if not _is_away(failed):
                    raise
                patience_s = self._patience_s if place is None else IN_LINE_PATIENCE_S
                if time.monotonic() + pause > answered + patience_s:
                    raise self._gave_up() from failed
                if pause == FIRST_PAUSE_S:
                    on_wait()
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE_S, pause * 2)
                continue
            except Refused:
                if place is not None or not await self._release_stale(request):
                    raise
                continue
            answered, pause = time.monotonic(), FIRST_PAUSE_S
            if answer.lease is not None:
                return answer.lease
            if answer.place is not None:
                if place is None and await self._release_stale(request):
                    place, since = answer.place, answer.place.since
                    continue
                place, since = answer.place, answer.place.since
                on_place(place)

    async def _reserve_once(self, request: LeaseRequest) -> Lease:
        try:
            return await self._client.reserve(request)
        except (Refused, Unavailable) as refused:
            if isinstance(refused, Unavailable) and _is_away(refused):
                raise
            if not await self._release_stale(request):
                raise
        return await self._client.reserve(request)

    async def _release_stale(self, request: LeaseRequest) -> bool:
        """Release leases of an earlier start of the same server. Return whether there were any.

        Only a Hub that was killed during a start leaves one. The server does not run, because the
        Hub is just starting it.
        """
        held = await self._client.leases(request.user)
        stale = [one for one in held if one.server == request.server and one.spawn != request.spawn]
        for one in stale:
            log.warning("Released lease %s of an interrupted start", one.id)
            await self._client.release(one.id)
        return bool(stale)

    async def release(
        self,
        user: str,
        spawn: str,
        lease: str | None,
        *,
        wait_s: float,
        after: Awaitable[None] | None = None,
    ) -> None:
        """Release the lease of one start. After ``wait_s``, continue in the background.

        A cancelled start may hold a lease whose answer never arrived. It is found by ``spawn``. The
        scheduler itself detects leases that could not be released.

        Args:
            lease: ID of the lease or of the queue position. None if neither is known.
            after: Awaitable that must end before the GPUs are free.
        """
        task = asyncio.create_task(self._release_after(after, user, spawn, lease))
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)
        await asyncio.wait([task], timeout=wait_s)

    async def released(self) -> None:
        """Wait until all pending releases have succeeded or failed."""
        if self._releasing:
            await asyncio.wait(self._releasing)

    async def _release_after(
        self, after: Awaitable[None] | None, user: str, spawn: str, lease: str | None
    ) -> None:
        if after is not None:
            await after
        await self._release(user, spawn, lease)

    async def _release(self, user: str, spawn: str, lease: str | None) -> None:
        deadline, pause = time.monotonic() + 10 * self._patience_s, FIRST_PAUSE_S
        while True:
            try:
                await self._release_once(user, spawn, lease)
                return
            except BenchpoolError as failed:
                if not isinstance(failed, Unavailable) or time.monotonic() > deadline:
                    log.warning("The lease of %s (start %s) was not released: %s",
                                user, spawn, failed)  # fmt: skip
                    return
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE_S, pause * 2)

    async def _release_once(self, user: str, spawn: str, lease: str | None) -> None:
        if lease is not None:
            ids = [lease]
        else:
            ids = [one.id for one in await self._client.leases(user) if one.spawn == spawn]
        for id_ in ids:
            try:
                await self._client.release(id_)
            except NotFound:
                continue

    async def advice(self, user: str) -> Advice:
        """Return the data for the form. Never raises, and returns within 2 s."""
        try:
            async with asyncio.timeout(ADVICE_TIMEOUT_S):
                quota, status = await asyncio.gather(
                    self._client.quota(user), self._client.status()
                )
        except (BenchpoolError, TimeoutError) as failed:
            log.warning("No data for the start form of %s: %s", user, failed)
            return Advice(None, None, "The scheduler does not answer. No GPU can be reserved now. "
                          "A server without GPU starts.")  # fmt: skip
        return Advice(quota, status)

    async def today(self, user: str) -> Today:
        """Return the data for the home page. Never raises, and returns within 2 s."""
        try:
            async with asyncio.timeout(ADVICE_TIMEOUT_S):
                quota, status, jobs, requests = await asyncio.gather(
                    self._client.quota(user),
                    self._client.status(),
                    self._client.jobs(user=user, live=True, limit=MOST_JOBS),
                    self._client.access(user),
                )
        except (BenchpoolError, TimeoutError) as failed:
            log.warning("No data for the home page of %s: %s", user, failed)
            return Today()
        return Today(quota, status, jobs, tuple(one for one in requests if one.decides))

    def _gave_up(self) -> Unavailable:
        return Unavailable(
            f"The scheduler did not answer for {self._patience_s:.0f} s, so no GPU can be "
            "reserved. Start with 0 GPUs, or try again in a minute.",
            code="not-reachable",
            numbers={"waited_s": self._patience_s},
        )


def _waited_too_long(longest_s: float, place: LinePlace | None) -> Unavailable:
    where = "" if place is None else f" (position {place.position} of {place.length} in the queue)"
    return Unavailable(
        f"No GPUs became free for this server within {duration(longest_s)}{where}. Start it "
        "without a GPU, or try again later.",
        code="line-too-long",
        numbers={"waited_s": longest_s},
    )


def _is_away(failed: Unavailable) -> bool:
    return not failed.code.startswith(_ANSWERS)
