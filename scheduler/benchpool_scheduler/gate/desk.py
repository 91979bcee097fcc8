"""Shared state of all requests at the gate, and the limit of open requests per caller."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from benchpool_scheduler.api.bodies import Bodies
from benchpool_scheduler.api.identity import Identity
from benchpool_scheduler.api.limits import Limits
from benchpool_scheduler.api.stream import Timing
from benchpool_scheduler.errors import TooMany
from benchpool_scheduler.gate.backend_connections import BackendConnections
from benchpool_scheduler.gate.directory import ServiceDirectory
from benchpool_scheduler.gate.figures import RequestFigures
from benchpool_scheduler.service import Caller

MOST_OPEN = 256
"""Maximum number of open requests and websockets per user."""


@dataclass(frozen=True, slots=True)
class GateDesk:
    """Dependencies and shared state of requests at the gate.

    Attributes:
        prefix: Path of benchpool with a trailing slash; ``hub_prefix``: path of the Hub.
        now: Clock of the figures, in seconds.
        hidden: Further cookies, in lower case, that no program sees.
        timing: Intervals at which the callers of open requests are authenticated again.
        open_of: Open requests by the caller's name; ``quiet`` is set while there are none.
        under_way: Events that end waiting requests and websockets.
    """

    directory: ServiceDirectory
    identity: Identity
    prefix: str
    hub_prefix: str
    now: Callable[[], float]
    figures: RequestFigures
    limits: Limits
    bodies: Bodies
    hidden: frozenset[str] = frozenset()
    timing: Timing = field(default_factory=Timing)
    connections: BackendConnections = field(default_factory=BackendConnections)
    open_of: Counter[str] = field(default_factory=Counter)
    under_way: set[asyncio.Event] = field(default_factory=set)
    quiet: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.quiet.set()

    @contextmanager
    def place_of(self, caller: Caller, gone: asyncio.Event) -> Iterator[None]:
        """Count an open request of a caller inside this context. Errors: TooMany."""
        if caller.kind == "user" and self.open_of[caller.name] >= MOST_OPEN:
            raise TooMany(
                f"{caller.name} has {MOST_OPEN} requests open at services; the limit is "
                f"{MOST_OPEN}. Wait until some are answered, or close some pages.",
                code="too-many-open",
                numbers={"limit": MOST_OPEN, "retry_after_s": 1},
            )
        self.open_of[caller.name] += 1
        self.under_way.add(gone)
        self.quiet.clear()
        try:
            yield
        finally:
            self.under_way.discard(gone)
            self.open_of[caller.name] -= 1
            if not self.open_of[caller.name]:
                del self.open_of[caller.name]
            if not self.open_of:
                self.quiet.set()
