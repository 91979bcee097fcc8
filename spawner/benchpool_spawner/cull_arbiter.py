"""Decides whether jupyterhub-idle-culler may stop a server, by the scheduler's view of its GPUs.

The culler knows only a server's last activity at the Hub. An open tab keeps that fresh, and a cell
that prints nothing lets it age. In the culler's own configuration file:

    c.IdleCuller.cull_arbiter_hook = cull_arbiter(url, token)
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from benchpool_scheduler.client import AsyncClient, Credentials
from benchpool_scheduler.contract import ParkedBench
from benchpool_scheduler.contract.idle_benches import BenchIdleness
from benchpool_scheduler.errors import BenchpoolError, Refused

log = logging.getLogger(__name__)

FRESH_S = 10.0
"""Cache lifetime of the scheduler's answer, which covers all servers, in seconds."""

PATIENCE_S = 10.0

PARKING_OFF = "parking-off"
"""Code of the scheduler's refusal where the site parks no benches."""

Server = tuple[str, str]
"""User and server name. The name is empty for the default server."""


class Arbiter(Protocol):
    """Hook that the culler calls for each ready server."""

    async def __call__(
        self, *, inactive: timedelta | None, inactive_limit: float, server: Mapping[str, Any]
    ) -> bool:
        """Return whether the server may be stopped."""


def may_be_culled(bench: BenchIdleness) -> bool:
    """Return whether a server with GPUs may be stopped: the scheduler has the Hub stop it.

    A bench that is due may also be parked, or lose only its GPUs. Then its server continues.
    """
    spared = bench.kept_until is not None or bench.exempt_until is not None
    return bench.stopping and not spared


def is_inactive(inactive: timedelta | None, limit_s: float) -> bool:
    """Return whether the culler's own rule applies. An unknown time does not count as inactivity.

    >>> is_inactive(timedelta(hours=1), 3600), is_inactive(None, 3600)
    (True, False)
    """
    return inactive is not None and inactive.total_seconds() >= limit_s


def whose(server: Mapping[str, Any]) -> Server:
    """Return user and name of a server. The Hub's model has the user only in ``full_name``.

    >>> whose({"name": "lab", "full_name": "susan/lab"}), whose({"name": "", "full_name": "joe/"})
    (('susan', 'lab'), ('joe', ''))
    """
    name = str(server["name"])
    return str(server["full_name"]).removesuffix(f"/{name}"), name


def cull_arbiter(
    url: str, token: str, *, monotonic: Callable[[], float] = time.monotonic
) -> Arbiter:
    """Return the hook for ``IdleCuller.cull_arbiter_hook``.

    It is a function, because the culler copies its configuration, and connections cannot be copied.

    Args:
        url: Address of the scheduler, ``http://host/services/benchpool``.
        token: Token of a Hub service, such as the culler's own. A user's token shows only that
            user's benches.
        monotonic: Monotonic time, in seconds.
    """
    known = KnownBenches(Credentials(url, token), monotonic)

    async def arbiter(
        *, inactive: timedelta | None, inactive_limit: float, server: Mapping[str, Any]
    ) -> bool:
        benches = await known.now()
        if benches is None:
            return False
        decided = benches.get(whose(server))
        return is_inactive(inactive, inactive_limit) if decided is None else decided

    return arbiter


class KnownBenches:
    """Cache of the decisions on all benches, because the culler checks many servers at once."""

    def __init__(self, credentials: Credentials, monotonic: Callable[[], float]) -> None:
        self._credentials = credentials
        self._monotonic = monotonic
        self._asking = asyncio.Lock()
        self._asked_at = float("-inf")
        self._benches: Mapping[Server, bool] | None = None

    async def now(self) -> Mapping[Server, bool] | None:
        """Return by server whether a bench may be stopped. None if the scheduler does not answer.

        A parked bench holds no GPU, but the memory of its kernel ends with its server.
        """
        async with self._asking:
            if self._monotonic() - self._asked_at >= FRESH_S:
                self._benches = await self._ask()
                self._asked_at = self._monotonic()
            return self._benches

    async def _ask(self) -> Mapping[Server, bool] | None:
        try:
            async with asyncio.timeout(PATIENCE_S), AsyncClient(self._credentials) as client:
                # In this order, a bench that returns to its GPU in between is in one of them.
                parked = await _parked(client)
                benches = await client.benches()
        except (BenchpoolError, TimeoutError) as failed:
            why = str(failed) or f"it did not answer within {PATIENCE_S:.0f} s."
            log.warning("No server is culled, because the scheduler reports no benches: %s", why)
            return None
        kept = {(it.user, it.server): False for it in parked}
        return kept | {(it.user, it.server): may_be_culled(it) for it in benches}


async def _parked(client: AsyncClient) -> Sequence[ParkedBench]:
    try:
        return await client.parked_benches()
    except Refused as refused:
        if refused.code == PARKING_OFF:
            return ()
        raise
