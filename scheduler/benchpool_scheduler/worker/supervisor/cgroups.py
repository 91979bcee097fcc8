"""The cgroups of a worker: they group its processes and limit its resources.

There may be one tree (v2), one for each controller (v1), or both. Each limit is set in the tree
that the kernel lets the supervisor use. The worker's folder is below the supervisor's own cgroup.
In v2 a cgroup that contains processes may not delegate its controllers. The folder is then below
``benchpool`` at the top of the tree, which root may create.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .. import process_identity
from . import device_filter
from .device_filter import Numbers

NAME = "benchpool"
SERVICE = "benchpool-service"
"""Names of the folder at the top of a tree, and of the cgroup into which systemd puts ``up``.

Cgroups of workers are siblings of the second one (``DelegateSubgroup``).
"""

PERIOD_US, LEAST_QUOTA_US = 100_000, 1_000
OLD_S = 60.0
"""Period and smallest quota of processor time, in µs, and age of an orphan cgroup, in seconds."""

ENDING_S, LOOK_S = 0.5, 0.01
"""Timeout for killed processes to leave the cgroup, and poll interval, in seconds."""

UNIFIED, SELF = "", "self"
KILL, MEMBERS = "cgroup.kill", "cgroup.procs"
_OURS = re.compile(r"benchpool-.+-(\d+)")


class Bounds:
    """Resource limits of a worker; None or empty for no limit.

    Attributes:
        memory: Bytes. ``cpus``: processor cores. ``processes``: processes and threads.
        devices: Character devices that it may not open.
        together: Out of memory ends the whole worker rather than one process.
    """

    __slots__ = ("cpus", "devices", "memory", "processes", "together")

    def __init__(
        self,
        memory: int | None = None,
        cpus: float | None = None,
        processes: int | None = None,
        devices: Sequence[Numbers] = (),
        together: bool = True,
    ) -> None:
        self.memory = memory
        self.cpus = cpus
        self.processes = processes
        self.devices = tuple(devices)
        self.together = together

    def controllers(self) -> list[str]:
        """Return the controllers that are needed; v2 has none for devices."""
        wanted = {"memory": self.memory, "cpu": self.cpus, "pids": self.processes}
        return [name for name, bound in wanted.items() if bound is not None]


class Group:
    """The cgroups of one worker, one in each tree; the first contains all of its processes."""

    __slots__ = ("folders", "holds")

    def __init__(self, folders: Sequence[str], holds: frozenset[str] = frozenset()) -> None:
        self.folders = tuple(folders)
        self.holds = holds

    def join(self) -> None:
        """Move the calling process into the cgroups. Raises OSError."""
        for folder in self.folders:
            _write(folder, MEMBERS, "0")

    def kill(self) -> None:
        """Kill all processes in the cgroups, in one step if the kernel supports it."""
        for folder in self.folders:
            try:
                _write(folder, KILL, "1")
            except OSError:
                continue
            return
        for pid, ticks in self.members():
            pidfd = process_identity.open_process(pid, ticks)
            if pidfd is not None:
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                os.close(pidfd)

    def members(self) -> Sequence[tuple[int, int]]:
        """Return pid and start time of each living process in the cgroups."""
        found = []
        for pid in _pids(self.folders[0]) if self.folders else ():
            ticks = process_identity.start_ticks(pid)
            if ticks is not None:
                found.append((pid, ticks))
        return found

    def remove(self) -> None:
        """Remove the empty cgroups, after a short wait for killed processes."""
        left = time.monotonic() + ENDING_S
        for folder in self.folders:
            while _is_busy(folder) and time.monotonic() < left:
                time.sleep(LOOK_S)

    def out_of_memory_kills(self) -> int:
        """Return the number of its processes that the kernel killed out of memory."""
        files = ("memory.events", "memory.oom_control")
        return self._sum(files, "oom_kill")

    def refused_processes(self) -> int:
        """Return how often a new process was rejected because of the limit."""
        return self._sum(("pids.events",), "max")

    def _sum(self, names: Iterable[str], key: str) -> int:
        return sum(counter(os.path.join(folder, name), key)
                   for folder in self.folders for name in names)  # fmt: skip


def _is_busy(folder: str) -> bool:
    """Remove a cgroup; return whether it still exists because a process in it is ending."""
    try:
        os.rmdir(folder)
    except OSError as failed:
        return failed.errno == errno.EBUSY
    return False


def make(name: str, bounds: Bounds | None = None, process: object = SELF) -> Group | None:
    """Create the cgroups of a worker with all limits that can be set; None if none can be created.

    ``holds`` of the result lists the limits in force: memory, cpu, pids, devices. The cgroups are
    created where ``process`` would create them.
    """
    wanted = Bounds() if bounds is None else bounds
    trees = mounts()
    lacking = [one for one in wanted.controllers() if one not in trees]
    unified = _make_unified(name, lacking, process)
    folders = [] if unified is None else [unified]
    # Without v2 any other tree groups the processes as well.
    alone = ["pids"] if unified is None else []
    denying = ["devices"] if wanted.devices else []
    for controller in dict.fromkeys([*alone, *wanted.controllers(), *denying]):
        folder = own_folder(controller, process) if controller in trees else None
        if folder is not None:
            with contextlib.suppress(OSError):
                made = os.path.join(folder, name)
                os.mkdir(made)
                folders.append(made)
    group = Group(folders)
    group.holds = frozenset(_bind(group, wanted, unified))
    return group if folders else None


def _make_unified(name: str, controllers: Sequence[str], process: object) -> str | None:
    """Create a cgroup v2 with these controllers, or without them if there is no better one."""
    fallback: str | None = None
    for parent in _parents(process):
        _hand_on(parent, controllers)
        group = os.path.join(parent, name)
        try:
            os.mkdir(group)
        except OSError:
            continue
        if not os.path.exists(os.path.join(group, KILL)):
            os.rmdir(group)
            continue
        if set(controllers) <= set(_words(group, "cgroup.controllers")):
            if fallback is not None:
                os.rmdir(fallback)
            return group
        if fallback is None:
            fallback = group
        else:
            os.rmdir(group)
    return fallback


def _parents(process: object = SELF, *, make: bool = True) -> Iterator[str]:
    """Yield the folders of the v2 tree that may contain the worker's cgroup, best first.

    With ``make``, root creates the folder at the top of the tree if nothing better works.
    """
    own, top = own_folder(UNIFIED, process), mounts().get(UNIFIED)
    if own is None or top is None:
        return
    yield os.path.dirname(own) if os.path.basename(own) == SERVICE else own
    mine = os.path.join(top, NAME)
    if make and os.geteuid() == 0 and _words(top, "cgroup.controllers"):
        with contextlib.suppress(OSError):
            os.mkdir(mine)
    if os.path.isdir(mine):
        yield mine


def _hand_on(parent: str, controllers: Sequence[str]) -> None:
    """Delegate these controllers to the cgroups below a folder, as far as possible."""
    had = set(_words(parent, "cgroup.subtree_control"))
    for one in controllers:
        if one not in had:
            with contextlib.suppress(OSError):
                _write(parent, "cgroup.subtree_control", f"+{one}")


def _bind(group: Group, bounds: Bounds, unified: str | None) -> Iterable[str]:
    """Set the limits; yield those in force."""
    quota = max(LEAST_QUOTA_US, int((bounds.cpus or 0) * PERIOD_US))
    files: dict[str, tuple[object, Sequence[Mapping[str, str]]]] = {
        "memory": (
            bounds.memory,
            [{"memory.max": f"{bounds.memory}"}, {"memory.limit_in_bytes": f"{bounds.memory}"}],
        ),
        "cpu": (
            bounds.cpus,
            [
                {"cpu.max": f"{quota} {PERIOD_US}"},
                {"cpu.cfs_period_us": f"{PERIOD_US}", "cpu.cfs_quota_us": f"{quota}"},
            ],
        ),
        "pids": (bounds.processes, [{"pids.max": f"{bounds.processes}"}]),
    }
    for name, (bound, ways) in files.items():
        if bound is not None and any(_set(folder, way) for folder in group.folders for way in ways):
            yield name
    if bounds.memory is not None:
        # Swap would only delay the end. If it cannot be limited, it does not exist.
        extra = {"memory.swap.max": "0", "memory.oom.group": f"{bounds.together:d}"}
        total = {"memory.memsw.limit_in_bytes": f"{bounds.memory}"}
        for folder in group.folders:
            for file, text in {**extra, **total}.items():
                _set(folder, {file: text})
    if bounds.cpus is not None:
        # By default a cgroup has the weight of one process. On a busy machine it should have the
        # weight of the cores that it may use.
        for folder in group.folders:
            _set(folder, {"cpu.weight": f"{min(10_000, max(1, round(100 * bounds.cpus)))}"})
            _set(folder, {"cpu.shares": f"{max(2, round(1024 * bounds.cpus))}"})
    if bounds.devices and _deny(group, bounds.devices, unified):
        yield "devices"


def _deny(group: Group, devices: Sequence[Numbers], unified: str | None) -> bool:
    for folder in group.folders:
        if os.path.exists(os.path.join(folder, "devices.deny")):
            with contextlib.suppress(OSError):
                for major, minor in devices:
                    _write(folder, "devices.deny", f"c {major}:{minor} rwm")
                return True
    if unified is not None:
        with contextlib.suppress(OSError):
            device_filter.attach(unified, devices)
            return True
    return False


def _set(folder: str, way: Mapping[str, str]) -> bool:
    """Write files if all exist; return whether all writes succeeded."""
    if not all(os.path.exists(os.path.join(folder, file)) for file in way):
        return False
    try:
        for file, text in way.items():
            _write(folder, file, text)
    except OSError:
        return False
    return True


# ------------------------------------------------------------------------------- orphans


def sweep_empty(older_s: float = OLD_S) -> int:
    """Remove empty cgroups whose supervisor is gone; return their number.

    Such orphans come from killed supervisors and from probes. A cgroup younger than ``older_s``
    seconds may still be in preparation.
    """
    removed = 0
    last = time.time() - older_s
    for parent in {*_parents(make=False), *filter(None, map(own_folder, mounts()))}:
        with contextlib.suppress(OSError), os.scandir(parent) as entries:
            for entry in list(entries):
                removed += _remove_left(entry, last)
    return removed


def _remove_left(entry: os.DirEntry[str], last: float) -> bool:
    name = _OURS.fullmatch(entry.name)
    if name is None:
        return False
    try:
        if entry.stat(follow_symlinks=False).st_mtime > last or _pids(entry.path):
            return False
        if process_identity.start_ticks(int(name[1])) is not None:
            return False
        os.rmdir(entry.path)
    except OSError:
        return False
    return True


# ------------------------------------------------------------------------------- mounts


def mounts() -> dict[str, str]:
    """Return the mount points of cgroup v2 (key ``""``) and of the v1 controllers."""
    found: dict[str, str] = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            left, _, right = line.partition(" - ")
            kind, _, options = right.split(" ", 2)
            target = left.split(" ")[4]
            if kind == "cgroup2":
                found.setdefault(UNIFIED, target)
            elif kind == "cgroup":
                for option in options.strip().split(","):
                    found.setdefault(option, target)
    return found


def _own(process: object) -> dict[str, str]:
    """Return the path of a process's cgroup in the v2 tree (key ``""``) and per v1 controller."""
    found: dict[str, str] = {}
    with open(f"/proc/{process}/cgroup", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            for controller in controllers.split(","):
                found[controller] = path
    return found


def own_folder(controller: str, process: object = SELF) -> str | None:
    """Return the folder of a process's cgroup, or None."""
    try:
        mount, path = mounts().get(controller), _own(process).get(controller)
    except (OSError, ValueError):
        return None
    return None if mount is None or path is None else os.path.normpath(mount + path)


# ------------------------------------------------------------------------------- files


def counter(path: str, key: str) -> int:
    """Return the number for a key in a file of key-value lines; 0 if there is none."""
    try:
        with open(path, encoding="ascii") as file:
            for line in file:
                name, _, value = line.partition(" ")
                if name == key:
                    return int(value)
    except (OSError, ValueError):
        pass
    return 0


def _words(folder: str, name: str) -> list[str]:
    try:
        with open(os.path.join(folder, name), encoding="ascii") as file:
            return file.read().split()
    except OSError:
        return []


def _pids(folder: str) -> list[int]:
    return [int(word) for word in _words(folder, MEMBERS)]


def _write(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "w", encoding="ascii") as file:
        file.write(text)
