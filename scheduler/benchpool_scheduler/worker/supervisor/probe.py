"""What of the containment of workers holds on this machine, tried: for ``benchpool doctor``."""

from __future__ import annotations

import os
from collections.abc import Callable

from . import cgroups, privacy, system_calls

NO_DEVICE = (195, 254)
"""A device file that no driver makes."""

EVERYTHING = cgroups.Bounds(memory=1 << 40, cpus=1.0, processes=1000, devices=[NO_DEVICE])


class Report:
    """What was found.

    Attributes:
        tree: The kind of cgroups: ``none``, ``v1``, ``v2``, or ``hybrid``, both at once.
        group: Workers have cgroups of their own. ``bounds``: what these bind: ``memory``, ``cpu``,
            ``pids``, ``devices``.
        private: What a worker can have for itself: ``tmp``, ``processes``.
        privileges: A worker can be kept from setuid programs' rights.
        pidfd: Processes can be signalled without mistaking one for another.
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
    """Return what holds for workers that a process starts; nothing is left changed."""
    return Report(process)


def _take_no_privileges() -> None:
    system_calls.prctl(system_calls.PR_SET_NO_NEW_PRIVS, 1)


def _open_own_process() -> None:
    os.close(os.pidfd_open(os.getpid()))


def _tried(act: Callable[[], None]) -> bool:
    """Return whether something works, tried in a child."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
