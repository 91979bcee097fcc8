"""Lookup of the processes of workers and benches on this machine, by their records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.worker import process_identity, records
from benchpool_scheduler.worker.folders import Folders
from benchpool_scheduler.worker.worker_id import WorkerId

SERVER_MARK = b"BENCHPOOL_SERVER_START="
DEVICES = b"CUDA_VISIBLE_DEVICES="
"""Environment variable of a notebook server that has its GPUs."""


@dataclass(frozen=True, slots=True)
class ProcessRoot:
    """Root of a process tree, and the folders of its cgroup if it has one.

    Attributes:
        pid: Process ID; with its start time in ticks, as the ID may be reused.
    """

    pid: int
    ticks: int
    groups: tuple[str, ...] = ()


def of_worker(folders: Folders, worker: WorkerId) -> ProcessRoot | None:
    """Return the process root of a worker; None without a record here, or when it has ended."""
    record = records.read(str(folders.worker(worker)), records.PROCESS)
    pid = None if record is None else record.get("pid")
    if record is None or not isinstance(pid, int):
        return None
    if record.get("boot_id") != process_identity.boot_id():
        return None
    ticks = process_identity.start_ticks(pid)
    groups = record.get("groups")
    found = tuple(it for it in groups if isinstance(it, str)) if isinstance(groups, list) else ()
    same = ticks is not None and ticks == record.get("start_ticks")
    return ProcessRoot(pid, ticks or 0, found) if same else None


def of_benches(
    gpus_of: Mapping[str, Iterable[str]], proc: Path = Path("/proc")
) -> Mapping[str, ProcessRoot]:
    """Return each lease's process root: the notebook server with its GPUs in the environment.

    Args:
        gpus_of: The GPUs of each lease, by its ID.
    """
    wanted = {frozenset(gpus): lease for lease, gpus in gpus_of.items()}
    found: dict[str, ProcessRoot] = {}
    if not wanted:
        return found
    for name in sorted((it for it in os.listdir(proc) if it.isdigit()), key=int):
        lease = wanted.get(_server_gpus(proc / name / "environ"))
        if lease is None or lease in found:
            continue  # the parent of a server's other processes is its root
        ticks = process_identity.start_ticks(int(name))
        if ticks is not None:
            found[lease] = ProcessRoot(int(name), ticks)
    return found


def _server_gpus(environ: Path) -> frozenset[str]:
    """Return the GPUs of a notebook server's process; empty for any other process."""
    try:
        variables = environ.read_bytes().split(b"\0")
    except OSError:
        return frozenset()  # ended, or not readable
    if not any(it.startswith(SERVER_MARK) for it in variables):
        return frozenset()
    devices = next((it for it in variables if it.startswith(DEVICES)), b"")
    return frozenset(it for it in os.fsdecode(devices[len(DEVICES) :]).split(",") if it)
