"""How workers of one machine are kept from each other: what each supervisor is told of it.

The supervisor does what the kernel lets it; ``benchpool doctor`` says what that is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from benchpool_scheduler.runtime import Launch, SandboxLevel
from benchpool_scheduler.worker.log_files import BOUND
from benchpool_scheduler.worker.process_limit import most_processes

GIB = 1024**3


class Sandbox:
    """What holds for workers.

    Args:
        level: ``auto``: bounds on memory, processor, processes and devices, no rights by setuid
            programs, and private folders for workers that run as their user's own account.
            ``full``: private folders for all. ``off``: nothing of it.
        denied: The devices that a worker with these GPUs must not open.
        log_bytes: Bound of its log on the disk.
    """

    def __init__(
        self,
        level: SandboxLevel,
        denied: Callable[[Sequence[str]], list[tuple[int, int]]] = lambda _: [],
        log_bytes: int = BOUND,
    ) -> None:
        self._level = level
        self._denied = denied
        self._log_bytes = log_bytes

    def told(self, launch: Launch) -> dict[str, object]:
        """Return what the worker's supervisor is told of it."""
        bounded: dict[str, object] = {"log_bytes": self._log_bytes}
        if self._level == "off":
            return bounded
        own_account = launch.account is not None and os.geteuid() == 0
        return {
            **bounded,
            "bounds": {
                "memory": round(launch.memory_gib * GIB) or None,
                "cpus": launch.cpus or None,
                "processes": most_processes(),
                "devices": self._denied(launch.gpus),
            },
            "private": self._level == "full" or own_account,
            "privileges": False,
        }
