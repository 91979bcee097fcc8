"""List the kernel settings that are too small for the tests; with ``--set``, raise them as root.

    python3 tests/preflight.py [--set]

Without them, the tests run slower, or not all at once. This script needs only Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

SYSTEM = Path("/proc/sys")


class Setting(NamedTuple):
    """A setting of the kernel, the value that the tests want, and why."""

    name: str
    wanted: int
    holds: Callable[[int, int], bool]
    why: str


def at_least(value: int, wanted: int) -> bool:
    """Return whether a value is at least the wanted one."""
    return value >= wanted


def equal(value: int, wanted: int) -> bool:
    """Return whether a value is the wanted one."""
    return value == wanted


SETTINGS = (
    Setting(
        "kernel.sched_autogroup_enabled", 0, equal, "with it, each session of processes gets an"
        " equal part of the processors, however many tests it runs",
    ),
    Setting(
        "fs.inotify.max_user_instances", 1024, at_least, "kubelets, Hubs and file watchers of"
        " several tests take one each",
    ),
    Setting("kernel.pid_max", 131072, at_least, "process IDs that are used again soon mislead"),
)  # fmt: skip


def look(setting: Setting, raise_it: bool) -> str | None:
    """Return a sentence on a setting that does not fit, or None if it fits or was raised."""
    path = SYSTEM / setting.name.replace(".", "/")
    try:
        value = int(path.read_text())
    except (OSError, ValueError):
        return None  # this kernel has no such setting
    if setting.holds(value, setting.wanted):
        return None
    if raise_it:
        try:
            path.write_text(f"{setting.wanted}\n")
        except OSError:
            pass
        else:
            return f"{setting.name} was {value} and is {setting.wanted} now."
    return (
        f"{setting.name} is {value}; the tests want {setting.wanted}: {setting.why}. "
        f"As root: sysctl -w {setting.name}={setting.wanted}"
    )


def main() -> None:
    """Print a line for each setting that does not fit."""
    for setting in SETTINGS:
        if sentence := look(setting, "--set" in sys.argv[1:]):
            print(f"Preflight: {sentence}")


if __name__ == "__main__":
    main()
