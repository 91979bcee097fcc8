"""Find and kill everything that a worker started, also what left its session and its parent.

Three nets, used together: the tree below the supervisor (as sub-reaper it inherits every orphan),
a cgroup of its own where one can be made (``cgroups``), and a sweep over the environments of all
processes for the worker's tag, which also works after the supervisor died.
Where no cgroup can be made, the supervisor notes the tree now and then (``process_notes``), so that
after its death also those are found who have cleared their environment.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Sequence

from .. import process_identity
from . import system_calls
from .cgroups import Group, counter, own_folder

Processes = Sequence[tuple[int, int]]
"""Pairs of pid and start time in ticks."""

BLIND = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Faults of the machine by which processes cannot be seen: not that there are none."""


def become_subreaper() -> bool:
    """Make orphans below us our children; return whether the kernel agreed."""
    try:
        system_calls.prctl(system_calls.PR_SET_CHILD_SUBREAPER, 1)
    except OSError:
        return False
    return True


def end_with(parent: int) -> None:
    """Let the kernel kill this process as soon as its parent is gone; called after ``fork``.

    A change of account takes that back: this comes after it. What this process starts is not meant.
    """
    with contextlib.suppress(OSError):
        system_calls.prctl(system_calls.PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


# ------------------------------------------------------------------------------- processes


def _all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(root: int) -> Processes:
    """Return all living processes below ``root``, parents before their children."""
    return _below([root])


def _below(roots: list[int]) -> Processes:
    children: dict[int, list[tuple[int, int]]] = {}
    for pid in _all():
        fields = process_identity.stat_fields(pid)
        if fields is not None:
            children.setdefault(int(fields[1]), []).append((pid, int(fields[19])))
    found: list[tuple[int, int]] = []
    queue = list(roots)
    while queue:
        below = children.get(queue.pop(0), [])
        found += below
        queue += [pid for pid, _ in below]
    return [(pid, ticks) for pid, ticks in found if process_identity.start_ticks(pid) == ticks]


def tagged(tag: str) -> Processes:
    """Return all living processes that were started with ``tag`` (``NAME=value``), without us."""
    wanted = b"\0" + os.fsencode(tag) + b"\0"
    found: list[tuple[int, int]] = []
    for pid in _all():
        if pid == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if wanted not in b"\0" + file.read() + b"\0":
                    continue
        except OSError as error:
            if error.errno in BLIND:
                raise
            continue  # gone, or another user's
        ticks = process_identity.start_ticks(pid)
        if ticks is not None:
            found.append((pid, ticks))
    return found


def send(processes: Processes, number: signal.Signals) -> None:
    """Signal each of the processes, provided it is still the same one."""
    for pid, ticks in processes:
        pidfd = process_identity.open_process(pid, ticks)
        if pidfd is None:
            continue
        try:
            signal.pidfd_send_signal(pidfd, number)
        except OSError:
            pass
        finally:
            os.close(pidfd)


def sweep(tag: str, group: Group | None, noted: Processes = ()) -> bool:
    """Kill once what carries the tag, was noted or is in the cgroup; return whether none was left.

    Also what those have started since: it has their descent, if nothing else of them.
    """
    if group is not None:
        group.kill()
    living = [one for one in noted if process_identity.start_ticks(one[0]) == one[1]]
    found = [*tagged(tag), *living]
    if group is not None:
        found += [one for one in group.members() if one not in found]
    if found and noted:
        found += _below([pid for pid, _ in found])
    send(found, signal.SIGKILL)
    return not found


def sweep_until_clean(tag: str, group: Group | None, pause_s: float, noted: Processes = ()) -> None:
    """Kill what carries the tag, was noted or is in the cgroup until nothing was found twice.

    Args:
        pause_s: Seconds between two rounds.
    """
    clean = 0
    while clean < 2:
        try:
            clean = clean + 1 if sweep(tag, group, noted) else 0
        except OSError as error:
            if error.errno not in BLIND:
                raise
            clean = 0
        if clean < 2:
            time.sleep(pause_s)


def out_of_memory_kills(group: Group | None) -> int:
    """Return the kernel's count of out-of-memory kills: of the cgroup, and of all around it.

    Together with a SIGKILL that nobody of us sent, a growing count tells running out of memory
    from other ends.
    """
    files = [
        os.path.join(folder, name)
        for folder, name in (
            (own_folder(""), "memory.events"),
            (own_folder("memory"), "memory.oom_control"),
        )
        if folder is not None
    ]
    around = sum(counter(file, "oom_kill") for file in [*files, "/proc/vmstat"])
    return around + (0 if group is None else group.out_of_memory_kills())
