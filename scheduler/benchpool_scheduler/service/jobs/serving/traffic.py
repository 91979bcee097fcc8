"""What the service must know of requests: given by whatever answers them at the addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ServiceFlow:
    """What came in at the address of a service, of the last minute.

    Attributes:
        p50_ms, p95_ms: Times to an answer; None where there was none.
        in_flight: Requests that are not answered yet, also those that wait for a replica.
        last_request_at: Epoch seconds; None for none that is known.
    """

    requests_per_s: float = 0.0
    p50_ms: float | None = None
    p95_ms: float | None = None
    in_flight: int = 0
    last_request_at: float | None = None


class RequestCounts(Protocol):
    """Counts requests."""

    def flow(self, name: str) -> ServiceFlow:
        """Return what came in at a service."""
        ...

    def in_flight(self, name: str, replica: str) -> int:
        """Return how many requests a replica has not answered yet."""
        ...

    async def drained(self, replica: str) -> None:
        """Wait until a replica has answered all requests that it was given."""
        ...


class NoRequests:
    """Nothing comes in: there is no address yet."""

    def flow(self, name: str) -> ServiceFlow:
        """Return that nothing came."""
        return ServiceFlow()

    def in_flight(self, name: str, replica: str) -> int:
        """Return that there is none."""
        return 0

    async def drained(self, replica: str) -> None:
        """Wait for nothing."""
