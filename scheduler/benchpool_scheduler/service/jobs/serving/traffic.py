"""Request figures that the service needs from the proxy at the service addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ServiceFlow:
    """Traffic of a service in the last minute.

    Attributes:
        p50_ms, p95_ms: Times to an answer, in milliseconds; None without answers.
        in_flight: Open requests, including requests that wait for a replica.
        last_request_at: Time of the last request that a replica got, in epoch seconds; None if no
            request is known.
        unserved_at: Time of the last request that found no ready replica, in epoch seconds, or
            None.
    """

    requests_per_s: float = 0.0
    p50_ms: float | None = None
    p95_ms: float | None = None
    in_flight: int = 0
    last_request_at: float | None = None
    unserved_at: float | None = None


class RequestCounts(Protocol):
    """Counter of requests."""

    def flow(self, name: str) -> ServiceFlow:
        """Return the traffic of a service."""
        ...

    def in_flight(self, name: str, replica: str) -> int:
        """Return the number of open requests of a replica."""
        ...

    async def drained(self, replica: str) -> None:
        """Wait until a replica has answered all its requests."""
        ...


class NoRequests:
    """Counter for a pool without service addresses: there are no requests."""

    def flow(self, name: str) -> ServiceFlow:
        """Return empty traffic."""
        return ServiceFlow()

    def in_flight(self, name: str, replica: str) -> int:
        """Return 0."""
        return 0

    async def drained(self, replica: str) -> None:
        """Return at once."""
