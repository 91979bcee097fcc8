"""What the gate is told of services: which there are for a caller, and who answers for them."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from benchpool_scheduler.service import Caller


@dataclass(frozen=True, slots=True)
class Backend:
    """One replica that answers.

    Attributes:
        id: Of its job.
        host: Where it listens, with ``port``.
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
    """Where the requests of a service go.

    Attributes:
        name: Of the service.
        state: Whether it answers.
        backends: Only ready ones; those that leave are not among them.
        sentence: Why it does not answer yet and what happens next, as plain text; empty when ready.
        retry_after_s: When a program should ask again, from the estimate, 1 at least.
        keep_prefix: Whether the program wants the whole path, with the service's address before it.
    """

    name: str
    state: Openness
    backends: tuple[Backend, ...]
    sentence: str
    retry_after_s: int
    keep_prefix: bool = False


class ServiceDirectory(Protocol):
    """Knows the services of the pool."""

    def route(self, name: str, caller: Caller) -> ServiceRoute:
        """Return where requests go.

        Errors: NotFound for no such service, and for a caller without a right to it.
        """

    def asked(self, name: str) -> None:
        """Note that a request came, which wakes a service that sleeps; cheap."""

    def changed(self, name: str) -> Awaitable[object]:
        """Return what is done at the next change of what ``route`` says.

        It is taken before ``route`` is asked, so that no change between the two is missed; whoever
        no longer waits cancels it.
        """
