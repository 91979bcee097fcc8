"""Where replicas listen, and where they are reached."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass

from benchpool_scheduler.runtime import Reachable, Runtime, WorkerId
from benchpool_scheduler.worker.loopback_ports import LOOPBACK, free_port

FIRST_PORT, PORTS = 10_000, 15_000
"""Of replicas with addresses of their own: below what gangs meet on, and what connections take."""


@dataclass(frozen=True, slots=True)
class ReplicaNetwork:
    """Either the loopback of one machine, or addresses of their own.

    Attributes:
        listen: On what programs listen to be reached.
        shared: All replicas share the ports of one machine.
        host_of: Returns where a worker that runs is reached; None where that is not known.
    """

    listen: str = LOOPBACK
    shared: bool = True
    host_of: Callable[[WorkerId], str | None] = lambda worker: LOOPBACK

    @classmethod
    def of(cls, runtime: Runtime) -> ReplicaNetwork:
        """Return the network of a runtime's workers."""
        if isinstance(runtime, Reachable):
            return cls(runtime.listen, shared=False, host_of=runtime.host_of)
        return cls()

    def port(self, job: str, taken: Collection[int]) -> int:
        """Return a port for a replica. Errors: OSError where one machine has none left."""
        return free_port(taken) if self.shared else own_port(job)

    @property
    def hint(self) -> str:
        """What a program that is not reached may do wrong; empty where there is nothing to say."""
        if self.shared:
            return ""
        return f"It is reached if it listens on {self.listen}, which it finds in HOST."


def own_port(job: str) -> int:
    """Return the port of a replica that has an address of its own, the same for the same job.

    The next pod with its address listens on another one, and is not taken for it.

    >>> own_port("a" * 26)
    13514
    """
    digest = hashlib.sha256(job.encode()).digest()
    return FIRST_PORT + int.from_bytes(digest[:8]) % PORTS
