"""Processor time, memory and disk traffic of process trees, from cgroups (v2), else ``/proc``.

Source of files and units: the kernel's documentation, "Control Group v2" and proc(5).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchpool_scheduler.telemetry.processes import ProcessRoot
from benchpool_scheduler.telemetry.samples import WorkerSample
from benchpool_scheduler.worker.worker_id import WorkerId

GIB = 1024**3
TICKS_S = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")

Of = WorkerId | str


@dataclass(frozen=True, slots=True)
class Counted:
    """Counter values at one time: processor seconds, and bytes since the start.

    Attributes:
        first_s: Part of ``cpu_s`` that the first process used itself.
    """

    cpu_s: float
    memory: int | None = None
    memory_peak: int | None = None
    read: int | None = None
    written: int | None = None
    first_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    cpu_s: float
    memory: int
    own_s: float


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters of one holder.

    Attributes:
        whose: Identity of the counters; it changes when they restart. ``cpus``: assigned cores,
            0 for no limit.
    """

    counted: Counted
    whose: object = None
    cpus: float = 0.0


class CounterSpans:
    """Conversion of counters into samples: each holder's use between two calls."""

    def __init__(self) -> None:
        self._before: dict[Of, tuple[float, Reading]] = {}
        self._peaks: dict[Of, int] = {}

    def samples(self, readings: Mapping[Of, Reading], now: float) -> list[WorkerSample]:
        """Return each holder's use since the last call; no sample for new holders or over a gap.

        Args:
            now: End of the samples, in seconds of any clock.
        """
        found = [self._between(of, it, now) for of, it in readings.items()]
        self._before = {of: (now, it) for of, it in readings.items()}
        self._peaks = {of: peak for of, peak in self._peaks.items() if of in readings}
        return [it for it in found if it is not None]

    def _between(self, of: Of, reading: Reading, at: float) -> WorkerSample | None:
        now = reading.counted
        peak = max(now.memory_peak or 0, now.memory or 0, self._peaks.get(of, 0))
        self._peaks[of] = peak
        known = self._before.get(of)
        if known is None or known[1].whose != reading.whose or at <= known[0]:
            return None
        before = known[1].counted
        return WorkerSample(
            of=of,
            at=at,
            span_s=at - known[0],
            cpu_s=max(now.cpu_s - before.cpu_s, 0.0),  # time of orphaned processes is lost
            cpus=reading.cpus,
            memory_gib=None if now.memory is None else now.memory / GIB,
            memory_peak_gib=peak / GIB if peak else None,
            read_bytes=_more(before.read, now.read),
            written_bytes=_more(before.written, now.written),
            first_cpu_s=max(now.first_s - before.first_s, 0.0),
        )


class ProcessMeter:
    """Sampler of process trees between two calls.

    Args:
        proc: The kernel's folder of processes.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._spans = CounterSpans()

    def sample(
        self, roots: Mapping[Of, tuple[ProcessRoot, float]], now: float
    ) -> list[WorkerSample]:
        """Return each tree's use since the last call; no sample for new trees.

        Args:
            roots: Root of each tree, and its assigned cores (0 for no limit).
            now: Seconds since the epoch.
        """
        below: Mapping[int, list[_Process]] | None = None
        readings: dict[Of, Reading] = {}
        for of, (root, cpus) in roots.items():
            found = of_cgroup(root.groups)
            if found is None or found.memory is None or found.read is None:
                below = self._all() if below is None else below
                found = _filled(found, self._of_tree(root, below))
            if found is not None:
                first = self._process(str(root.pid))
                found = replace(found, first_s=0.0 if first is None else first.own_s)
                readings[of] = Reading(found, root.pid, cpus)
        return self._spans.samples(readings, now)

    # ------------------------------------------------------------------ /proc

    def _all(self) -> Mapping[int, list[_Process]]:
        """Return all processes by their parent."""
        found: dict[int, list[_Process]] = {}
        for name in os.listdir(self._proc):
            process = self._process(name) if name.isdigit() else None
            if process is not None:
                found.setdefault(process.parent, []).append(process)
        return found

    def _process(self, name: str) -> _Process | None:
        try:
            text = (self._proc / name / "stat").read_text(errors="replace")
            fields = text.rpartition(")")[2].split()
            user, system, *of_children = (int(it) / TICKS_S for it in fields[11:15])
            own_s = user + system
            whole_s = own_s + sum(of_children)  # time of ended children
            return _Process(int(name), int(fields[1]), whole_s, int(fields[21]) * PAGE, own_s)
        except (OSError, ValueError, IndexError):
            return None  # ended meanwhile

    def _of_tree(self, root: ProcessRoot, below: Mapping[int, list[_Process]]) -> Counted | None:
        first = self._process(str(root.pid))
        if first is None:
            return None
        tree, queue = [first], [root.pid]
        while queue:
            children = below.get(queue.pop(), [])
            tree += children
            queue += [it.pid for it in children]
        traffic = [self._traffic(it.pid) for it in tree]
        known = [it for it in traffic if it is not None]
        return Counted(
            cpu_s=sum(it.cpu_s for it in tree),
            memory=sum(it.memory for it in tree),
            read=sum(it[0] for it in known) if known else None,
            written=sum(it[1] for it in known) if known else None,
        )

    def _traffic(self, pid: int) -> tuple[int, int] | None:
        values = _pairs(self._proc / str(pid) / "io", ":")
        return (
            None if values is None else (values.get("read_bytes", 0), values.get("write_bytes", 0))
        )


def of_cgroup(folders: tuple[str, ...]) -> Counted | None:
    """Return the kernel's counters of a cgroup (v2), or None when it is not v2."""
    for folder in map(Path, folders):
        cpu = _pairs(folder / "cpu.stat", " ")
        if cpu is None or "usage_usec" not in cpu:
            continue
        traffic = _traffic_of(folder / "io.stat")
        return Counted(
            cpu_s=cpu["usage_usec"] / 1e6,
            memory=_number(folder / "memory.current"),
            memory_peak=_number(folder / "memory.peak"),
            read=None if traffic is None else traffic[0],
            written=None if traffic is None else traffic[1],
        )
    return None


def _filled(cgroup: Counted | None, tree: Counted | None) -> Counted | None:
    """Return a cgroup's counters, completed by those of its processes.

    A cgroup always counts processor time, but memory and disks only with their controllers.
    """
    if cgroup is None or tree is None:
        return cgroup or tree
    return replace(
        cgroup,
        memory=tree.memory if cgroup.memory is None else cgroup.memory,
        read=tree.read if cgroup.read is None else cgroup.read,
        written=tree.written if cgroup.written is None else cgroup.written,
    )


def _traffic_of(file: Path) -> tuple[int, int] | None:
    """Return the bytes read and written, over all disks."""
    try:
        words = file.read_text().split()
    except OSError:
        return None
    pairs = [word.partition("=") for word in words if "=" in word]
    read = sum(int(value) for key, _, value in pairs if key == "rbytes")
    return read, sum(int(value) for key, _, value in pairs if key == "wbytes")


def _pairs(file: Path, sign: str) -> dict[str, int] | None:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    pairs = (line.partition(sign) for line in lines)
    return {key: int(value) for key, _, value in pairs if value.strip().isdigit()}


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _more(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else max(now - before, 0)
