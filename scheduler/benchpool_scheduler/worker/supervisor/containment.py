"""Find and kill everything that a worker started, also what left its session and its parent.

Three nets, used together: the tree below the supervisor (as sub-reaper it inherits every orphan),
an own cgroup v2 where one can be made (``cgroup.kill`` is one atomic step), and a sweep over the
environments of all processes for the worker's tag, which also works after the supervisor died.
Where no cgroup can be made, the supervisor notes the tree now and then (``process_notes``), so that
after its death also those are found who have cleared their environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import time
from collections.abc import Sequence

from .. import process_identity

Processes = Sequence[tuple[int, int]]
"""Pairs of pid and start time in ticks."""

BLIND = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Faults of the machine by which processes cannot be seen: not that there are none."""

PR_SET_CHILD_SUBREAPER = 36
"""From ``linux/prctl.h``."""


def become_subreaper() -> bool:
    """Make orphans below us our children; return whether the kernel agreed."""
    try:
        return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


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


def sweep(tag: str, group: str | None, noted: Processes = ()) -> bool:
    """Kill once what carries the tag, was noted or is in the cgroup; return whether none was left.

    Also what those have started since: it has their descent, if nothing else of them.
    """
    if group is not None:
        kill_group(group)
    living = [one for one in noted if process_identity.start_ticks(one[0]) == one[1]]
    found = [*tagged(tag), *living]
    if found and noted:
        found += _below([pid for pid, _ in found])
    send(found, signal.SIGKILL)
    return not found


def sweep_until_clean(tag: str, group: str | None, pause_s: float, noted: Processes = ()) -> None:
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


# ------------------------------------------------------------------------------- cgroups


def _mounts() -> dict[str, str]:
    """Return where cgroup v2 (key ``""``) and the v1 controllers are mounted."""
    found: dict[str, str] = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            left, _, right = line.partition(" - ")
            kind, _, options = right.split(" ", 2)
            target = left.split(" ")[4]
            if kind == "cgroup2":
                found.setdefault("", target)
            elif kind == "cgroup":
                for option in options.strip().split(","):
                    found.setdefault(option, target)
    return found


def _own() -> dict[str, str]:
    """Return our cgroup's path in the unified tree (key ``""``) and per v1 controller."""
    found: dict[str, str] = {}
    with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            for controller in controllers.split(","):
                found[controller] = path
    return found


def _folder(controller: str) -> str | None:
    try:
        mount, path = _mounts().get(controller), _own().get(controller)
    except (OSError, ValueError):
        return None
    return None if mount is None or path is None else os.path.normpath(mount + path)


def make_group(name: str) -> str | None:
    """Make a cgroup v2 below our own and return its folder; None where that is not possible."""
    parent = _folder("")
    if parent is None:
        return None
    group = os.path.join(parent, name)
    try:
        os.mkdir(group)
    except OSError:
        return None
    if os.path.exists(os.path.join(group, "cgroup.kill")):
        return group
    remove_group(group)
    return None


def join_group(group: str) -> None:
    """Move the calling process into the cgroup."""
    with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
        file.write("0")


def kill_group(group: str) -> None:
    """Kill everything in the cgroup in one step; no harm when it is gone."""
    try:
        with open(os.path.join(group, "cgroup.kill"), "w", encoding="ascii") as file:
            file.write("1")
    except OSError:
        pass


def remove_group(group: str) -> None:
    """Remove an empty cgroup."""
    with contextlib.suppress(OSError):
        os.rmdir(group)


def _counter(path: str, key: str) -> int:
    try:
        with open(path, encoding="ascii") as file:
            for line in file:
                name, _, value = line.partition(" ")
                if name == key:
                    return int(value)
    except (OSError, ValueError):
        pass
    return 0


def out_of_memory_kills(group: str | None) -> int:
    """Return the kernel's count of out-of-memory kills: of the cgroup, else of all around it.

    Together with a SIGKILL that nobody of us sent, a growing count tells running out of memory
    from other ends.
    """
    own = None if group is None else os.path.join(group, "memory.events")
    if own is not None and os.path.exists(own):
        return _counter(own, "oom_kill")
    files = [
        os.path.join(folder, name)
        for folder, name in (
            (_folder(""), "memory.events"),
            (_folder("memory"), "memory.oom_control"),
        )
        if folder is not None
    ]
    return sum(_counter(file, "oom_kill") for file in [*files, "/proc/vmstat"])


# ------------------------------------------------------------------------------- for doctor


def probe() -> dict[str, object]:
    """Return what of this holds on this machine: ``tree``, ``own_cgroup``, ``pidfd``, ``text``."""
    mounts = _mounts()
    tree = "none" if not mounts else "v2" if set(mounts) == {""} else "hybrid"
    if tree == "hybrid" and "" not in mounts:
        tree = "v1"
    group = make_group(f"benchpool-probe-{os.getpid()}")
    if group is not None:
        remove_group(group)
    try:
        os.close(os.pidfd_open(os.getpid()))
        pidfd = True
    except OSError:
        pidfd = False
    how = (
        "workers are killed through an own cgroup, their process tree and a sweep for their tag"
        if group is not None
        else "no own cgroup can be made; workers are killed through their process tree, which "
        "their supervisors note twice a second, and a sweep for their tag"
    )
    text = f"cgroups: {tree}; {how}"
    return {"tree": tree, "own_cgroup": group is not None, "pidfd": pidfd, "text": text}
