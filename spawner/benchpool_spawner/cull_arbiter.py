"""Whether jupyterhub-idle-culler may stop a server, by what the scheduler knows of its GPUs.

The culler knows a server's last activity at the Hub alone, which an open tab keeps fresh and a cell
that prints nothing lets age. In the culler's own configuration file:

    c.IdleCuller.cull_arbiter_hook = cull_arbiter(url, token)
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Protocol

from benchpool_scheduler.client import AsyncClient, Credentials
from benchpool_scheduler.contract.idle_benches import BenchCommand, BenchIdleness, BenchStep
from benchpool_scheduler.errors import BenchpoolError

log = logging.getLogger(__name__)

FRESH_S = 10.0
"""For so long an answer of the scheduler holds: a round of the culler asks about all servers."""

PATIENCE_S = 10.0

Server = tuple[str, str]
"""A user and the name of a server, empty for the default one."""


class Arbiter(Protocol):
    """What the culler calls for each server that is ready."""

    async def __call__(
        self, *, inactive: timedelta | None, inactive_limit: float, server: Mapping[str, Any]
    ) -> bool:
        """Tell whether the server may be stopped."""


def may_be_culled(bench: BenchIdleness) -> bool:
    """Tell whether a server with GPUs may be stopped: its bench is due, and nothing spares it.

    While its notebook server still carries out a command it may not: it gives the GPUs back and
    goes on, or it leaves its owner a note.
    """
    spared = bench.kept_until is not None or bench.exempt_until is not None
    return bench.step is BenchStep.DUE and bench.command is BenchCommand.NONE and not spared


def is_inactive(inactive: timedelta | None, limit_s: float) -> bool:
    """Tell what the culler's own rule says; a time that is not known is no inactivity.

    >>> is_inactive(timedelta(hours=1), 3600), is_inactive(None, 3600)
    (True, False)
    """
    return inactive is not None and inactive.total_seconds() >= limit_s


def whose(server: Mapping[str, Any]) -> Server:
    """Return whose a server is, by the Hub's model of it, which names its user nowhere else.

    >>> whose({"name": "lab", "full_name": "susan/lab"}), whose({"name": "", "full_name": "joe/"})
    (('susan', 'lab'), ('joe', ''))
    """
    name = str(server["name"])
    return str(server["full_name"]).removesuffix(f"/{name}"), name


def cull_arbiter(
    url: str, token: str, *, monotonic: Callable[[], float] = time.monotonic
) -> Arbiter:
    """Return what ``IdleCuller.cull_arbiter_hook`` takes.

    A function, because the culler copies its configuration, and connections cannot be copied.

    Args:
        url: The scheduler's address, ``http://host/services/benchpool``.
        token: A Hub service's, as the culler's own is; a user's shows that user's benches alone.
        monotonic: Seconds by a clock that only goes forward.
    """
    known = KnownBenches(Credentials(url, token), monotonic)

    async def arbiter(
        *, inactive: timedelta | None, inactive_limit: float, server: Mapping[str, Any]
    ) -> bool:
        benches = await known.now()
        if benches is None:
            return False
        bench = benches.get(whose(server))
        return is_inactive(inactive, inactive_limit) if bench is None else may_be_culled(bench)

    return arbiter


class KnownBenches:
    """All benches as the scheduler last told them; the culler asks about many servers at once."""

    def __init__(self, credentials: Credentials, monotonic: Callable[[], float]) -> None:
        self._credentials = credentials
        self._monotonic = monotonic
        self._asking = asyncio.Lock()
        self._asked_at = float("-inf")
        self._told: Mapping[Server, BenchIdleness] | None = None

    async def now(self) -> Mapping[Server, BenchIdleness] | None:
        """Return them by user and server; None where the scheduler did not tell."""
        async with self._asking:
            if self._monotonic() - self._asked_at >= FRESH_S:
                self._told = await self._ask()
                self._asked_at = self._monotonic()
            return self._told

    async def _ask(self) -> Mapping[Server, BenchIdleness] | None:
        try:
            async with asyncio.timeout(PATIENCE_S), AsyncClient(self._credentials) as client:
                benches = await client.benches()
        except (BenchpoolError, TimeoutError) as failed:
            why = str(failed) or f"it did not answer within {PATIENCE_S:.0f} s."
            log.warning("The scheduler does not tell of benches, so no server is culled: %s", why)
            return None
        return {(it.user, it.server): it for it in benches}
