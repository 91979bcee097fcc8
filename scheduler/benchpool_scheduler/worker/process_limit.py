"""Limit for processes and threads of a worker or a notebook server."""

from __future__ import annotations

MOST_PROCESSES = 32_768
PID_MAX = "/proc/sys/kernel/pid_max"


def most_processes() -> int:
    """Return the limit: half of the machine's limit, at most 32,768."""
    try:
        with open(PID_MAX, encoding="ascii") as file:
            return min(MOST_PROCESSES, int(file.read()) // 2)
    except (OSError, ValueError):
        return MOST_PROCESSES
