"""Test of the containment of workers on this machine, for ``benchpool doctor``."""

from __future__ import annotations

import os
from collections.abc import Callable

from . import cgroups, privacy, system_calls

NO_DEVICE = (195, 254)
"""A device number that no driver creates."""

EVERYTHING = cgroups.Bounds(memory=1 << 40, cpus=1.0, processes=1000, devices=[NO_DEVICE])


class Report:
    """Result of the test.

    Attributes:
        tree: The kind of cgroups: ``none``, ``v1``, ``v2``, or ``hybrid`` for both.
        group: Workers have their own cgroups. ``bounds``: limits in force: ``memory``, ``cpu``,
            ``pids``, ``devices``.
        private: Resources that a worker can have for itself: ``tmp``, ``processes``.
        privileges: A worker can be denied the rights of setuid programs.
        pidfd: Processes can be signalled without the risk of a reused pid.
    """

    __slots__ = ("bounds", "group", "pidfd", "private", "privileges", "tree")

    def __init__(self, process: object) -> None:
        trees = cgroups.mounts()
        both = "hybrid" if cgroups.UNIFIED in trees else "v1"
        self.tree = "none" if not trees else "v2" if set(trees) == {cgroups.UNIFIED} else both
        made = cgroups.make(f"benchpool-probe-{os.getpid()}", EVERYTHING, process)
        self.group = made is not None
        self.bounds = frozenset() if made is None else made.holds
        if made is not None:
            made.remove()
        self.private = privacy.holds()
        self.privileges = _tried(_take_no_privileges)
        self.pidfd = _tried(_open_own_process)


def look(process: object = cgroups.SELF) -> Report:
    """Return the test's result for workers that a process starts; leaves no changes."""
    return Report(process)


def _take_no_privileges() -> None:
    system_calls.prctl(system_calls.PR_SET_NO_NEW_PRIVS, 1)


def _open_own_process() -> None:
    os.close(os.pidfd_open(os.getpid()))


def _tried(act: Callable[[], None]) -> bool:
    """Return whether an action works, tested in a child."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
