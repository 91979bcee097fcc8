"""Finding and killing of all processes of a worker, even after they left session and parent.

Three methods are combined. The first is the tree below the supervisor, which inherits every orphan
as sub-reaper. The second is a cgroup for the worker, if one can be created (``cgroups``). The third
is a search of the environments of all processes for the worker's tag, which also works after the
supervisor died.

Without a cgroup, the supervisor records the tree from time to time (``process_notes``). After its
death this also finds processes that cleared their environment.
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
"""Faults of the machine that prevent listing processes; they do not mean that there are none."""


def become_subreaper() -> bool:
    """Become the parent of orphaned descendants; return whether the kernel supports it."""
    try:
        system_calls.prctl(system_calls.PR_SET_CHILD_SUBREAPER, 1)
    except OSError:
        return False
    return True


def end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends; called after ``fork``.

    A change of account resets this, so call it afterwards. Children of this process are not
    affected.
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
    """Return all living processes started with ``tag`` (``NAME=value``), except this one."""
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
            continue  # gone, or of another account
        ticks = process_identity.start_ticks(pid)
        if ticks is not None:
            found.append((pid, ticks))
    return found


def send(processes: Processes, number: signal.Signals) -> None:
    """Send a signal to each process that is still the same one."""
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
    """Kill all tagged, noted or grouped processes once; return whether none was left.

    If ``noted`` is given, processes that these have started since are killed too.
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
    """Kill all tagged, noted or grouped processes until two rounds find none.

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
    """Return the kernel's out-of-memory kills in the cgroup, its surroundings and the machine.

    After a SIGKILL that the supervisor did not send, an increased count identifies an out-of-memory
    kill.
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
