"""The cgroups of a worker: what holds its processes together, and bounds what they take.

There may be one tree (v2), one for each controller (v1), or both; each bound is set in the tree
that the kernel lets us use. Our folder is below the cgroup that we are in ourselves. Where that one
may not hand its controllers on because processes are in it (v2), it is below ``benchpool`` at the
top of the tree, which root may make there.
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
"""Our own folder at the top of a tree; and the cgroup that systemd puts ``up`` into, beside which
those of the workers lie (``DelegateSubgroup``)."""

PERIOD_US, LEAST_QUOTA_US = 100_000, 1_000
OLD_S = 60.0
"""Of what the kernel divides processor time into. An empty cgroup that is older is left over."""

ENDING_S, LOOK_S = 0.5, 0.01
"""So long what was killed may take to leave its cgroup, and how often that is looked at."""

UNIFIED, SELF = "", "self"
KILL, MEMBERS = "cgroup.kill", "cgroup.procs"
_OURS = re.compile(r"benchpool-.+-(\d+)")


class Bounds:
    """What a worker may take: None and nothing for no bound.

    Attributes:
        memory: Bytes. ``cpus``: processor cores. ``processes``: processes and threads.
        devices: Character devices that it may not open.
        together: Who takes too much memory is ended whole; else the kernel ends one process.
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
        """Return the controllers that are needed; devices have none of their own in v2."""
        wanted = {"memory": self.memory, "cpu": self.cpus, "pids": self.processes}
        return [name for name, bound in wanted.items() if bound is not None]


class Group:
    """The folders of one worker, one in each tree; the first holds all of its processes."""

    __slots__ = ("folders", "holds")

    def __init__(self, folders: Sequence[str], holds: frozenset[str] = frozenset()) -> None:
        self.folders = tuple(folders)
        self.holds = holds

    def join(self) -> None:
        """Move the calling process into it. Errors: OSError."""
        for folder in self.folders:
            _write(folder, MEMBERS, "0")

    def kill(self) -> None:
        """Kill everything in it, in one step where the kernel can; no harm when it is gone."""
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
        """Return pid and start time of each process that lives in it."""
        found = []
        for pid in _pids(self.folders[0]) if self.folders else ():
            ticks = process_identity.start_ticks(pid)
            if ticks is not None:
                found.append((pid, ticks))
        return found

    def remove(self) -> None:
        """Remove it when it is empty; what was killed is waited for while the kernel ends it."""
        left = time.monotonic() + ENDING_S
        for folder in self.folders:
            while _is_busy(folder) and time.monotonic() < left:
                time.sleep(LOOK_S)

    def out_of_memory_kills(self) -> int:
        """Return how many of its processes the kernel has ended for want of memory."""
        files = ("memory.events", "memory.oom_control")
        return self._sum(files, "oom_kill")

    def refused_processes(self) -> int:
        """Return how often a new process was refused because there were too many."""
        return self._sum(("pids.events",), "max")

    def _sum(self, names: Iterable[str], key: str) -> int:
        return sum(counter(os.path.join(folder, name), key)
                   for folder in self.folders for name in names)  # fmt: skip


def _is_busy(folder: str) -> bool:
    """Remove a cgroup; say whether it is there still because something in it ends just now."""
    try:
        os.rmdir(folder)
    except OSError as failed:
        return failed.errno == errno.EBUSY
    return False


def make(name: str, bounds: Bounds | None = None, process: object = SELF) -> Group | None:
    """Make the cgroups of a worker; None where none can be made. What can be bound, is.

    ``holds`` of what is returned says which: memory, cpu, pids, devices. They are made where
    ``process`` would make them.
    """
    wanted = Bounds() if bounds is None else bounds
    trees = mounts()
    lacking = [one for one in wanted.controllers() if one not in trees]
    unified = _make_unified(name, lacking, process)
    folders = [] if unified is None else [unified]
    # Without v2 any other tree holds the processes together as well.
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
    """Make a cgroup v2 that has these controllers; one without them where there is no better."""
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
    """Yield the folders of the v2 tree below which ours may lie, best first.

    Our own at its top is made when nothing better would do, and ``make`` is given.
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
    """Let the cgroups below a folder have these controllers, as far as it may itself."""
    had = set(_words(parent, "cgroup.subtree_control"))
    for one in controllers:
        if one not in had:
            with contextlib.suppress(OSError):
                _write(parent, "cgroup.subtree_control", f"+{one}")


def _bind(group: Group, bounds: Bounds, unified: str | None) -> Iterable[str]:
    """Set the bounds; yield those that hold."""
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
        # Swap would only slow down what is to end; where it cannot be bound it is not there.
        extra = {"memory.swap.max": "0", "memory.oom.group": f"{bounds.together:d}"}
        total = {"memory.memsw.limit_in_bytes": f"{bounds.memory}"}
        for folder in group.folders:
            for file, text in {**extra, **total}.items():
                _set(folder, {file: text})
    if bounds.cpus is not None:
        # All of it together would weigh as much as one process: where the machine is short, it
        # weighs as much as the cores that it may have.
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
    """Write files that are all there; return whether all took it."""
    if not all(os.path.exists(os.path.join(folder, file)) for file in way):
        return False
    try:
        for file, text in way.items():
            _write(folder, file, text)
    except OSError:
        return False
    return True


# ------------------------------------------------------------------------------- what is left over


def sweep_empty(older_s: float = OLD_S) -> int:
    """Remove cgroups of ours that are empty and whose supervisor is gone; return how many.

    They are left by supervisors that were killed, and by probes. One that is younger than
    ``older_s`` seconds may be on its way.
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


# ------------------------------------------------------------------------------- where they are


def mounts() -> dict[str, str]:
    """Return where cgroup v2 (key ``""``) and the v1 controllers are mounted."""
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
    """Return the folder of the cgroup that a process is in; None where there is none."""
    try:
        mount, path = mounts().get(controller), _own(process).get(controller)
    except (OSError, ValueError):
        return None
    return None if mount is None or path is None else os.path.normpath(mount + path)


# ------------------------------------------------------------------------------- files


def counter(path: str, key: str) -> int:
    """Return the number behind a key in a file of such lines; 0 where there is none."""
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
