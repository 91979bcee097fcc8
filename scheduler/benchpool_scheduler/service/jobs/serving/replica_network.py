"""Addresses on which replicas listen and are reached."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass

from benchpool_scheduler.runtime import Reachable, Runtime, WorkerId
from benchpool_scheduler.worker.loopback_ports import LOOPBACK, free_port

FIRST_PORT, PORTS = 10_000, 15_000
"""Port range of replicas with addresses of their own, below the ports of gangs and of outgoing
connections.
"""


@dataclass(frozen=True, slots=True)
class ReplicaNetwork:
    """Network of replicas: the loopback of one machine, or an address per replica.

    Attributes:
        listen: Address on which programs must listen.
        shared: Whether all replicas share the ports of one machine.
        host_of: Returns the address of a running worker, or None if it is unknown.
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
        """Return a port for a replica. Errors: OSError if one machine has no free port."""
        return free_port(taken) if self.shared else own_port(job)

    @property
    def hint(self) -> str:
        """Likely mistake of a program that cannot be reached; empty if there is none."""
        if self.shared:
            return ""
        return f"It must listen on {self.listen}, which the variable HOST contains."


def own_port(job: str) -> int:
    """Return the port of a replica with an address of its own; it depends only on the job.

    The next pod with the same address listens on another port, and is not mistaken for it.

    >>> own_port("a" * 26)
    13514
    """
    digest = hashlib.sha256(job.encode()).digest()
    return FIRST_PORT + int.from_bytes(digest[:8]) % PORTS
