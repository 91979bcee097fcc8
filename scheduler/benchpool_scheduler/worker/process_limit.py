"""How many processes and threads a worker or a notebook server may have."""

from __future__ import annotations

MOST_PROCESSES = 32_768
PID_MAX = "/proc/sys/kernel/pid_max"


def most_processes() -> int:
    """Return the bound: half of what the machine may have, at most."""
    try:
        with open(PID_MAX, encoding="ascii") as file:
            return min(MOST_PROCESSES, int(file.read()) // 2)
    except (OSError, ValueError):
        return MOST_PROCESSES
