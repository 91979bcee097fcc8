"""Interface of the gate to the services: those of a caller, and their replicas."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from benchpool_scheduler.service import Caller


@dataclass(frozen=True, slots=True)
class Backend:
    """One ready replica.

    Attributes:
        id: ID of its job.
        host: Its host; ``port``: its port.
    """

    id: str
    host: str
    port: int


class Openness(StrEnum):
    """Whether a service answers."""

    READY = "ready"
    STARTING = "starting"
    ASLEEP = "asleep"
    PAUSED = "paused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ServiceRoute:
    """Route for the requests of a service.

    Attributes:
        name: Name of the service.
        state: Whether it answers.
        backends: Ready replicas only; leaving ones are excluded.
        sentence: Why it does not answer yet and what happens next, as plain text; empty when ready.
        retry_after_s: Recommended retry delay for programs, from the estimate, at least 1.
        keep_prefix: Whether the program gets the whole path, including the service's address.
    """

    name: str
    state: Openness
    backends: tuple[Backend, ...]
    sentence: str
    retry_after_s: int
    keep_prefix: bool = False


class ServiceDirectory(Protocol):
    """Directory of the services of the pool."""

    def route(self, name: str, caller: Caller) -> ServiceRoute:
        """Return the route for requests.

        Errors: NotFound for an unknown service, and for a caller without access to it.
        """

    def asked(self, name: str) -> None:
        """Record a request, which wakes a sleeping service; cheap."""

    def changed(self, name: str) -> Awaitable[object]:
        """Return an awaitable that is done at the next change of the result of ``route``.

        It is created before the call of ``route``, so that no change between the two is missed. The
        caller cancels it when it stops waiting.
        """
