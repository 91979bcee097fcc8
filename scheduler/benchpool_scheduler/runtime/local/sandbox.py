"""Isolation of workers of one machine from each other: the supervisor's settings.

The supervisor applies what the kernel supports; ``benchpool doctor`` reports it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from benchpool_scheduler.runtime import Launch, SandboxLevel
from benchpool_scheduler.worker.log_files import BOUND
from benchpool_scheduler.worker.process_limit import most_processes

GIB = 1024**3


class Sandbox:
    """Isolation settings for workers.

    Args:
        level: ``auto``: limits on memory, processor, processes and devices, no rights by setuid
            programs, and private folders for workers that run as their user's own account.
            ``full``: private folders for all workers. ``off``: no isolation.
        denied: Returns the devices that a worker with these GPUs must not open.
        log_bytes: Size limit of a worker's log on disk, in bytes.
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

    def settings(self, launch: Launch) -> dict[str, object]:
        """Return the isolation settings for the worker's supervisor."""
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
