"""Description of an unexpected worker, from its folder and its process.

The service writes a description into the folder of each attempt (``Launch.origin``). An attempt
without one, started by an earlier version, is described by the variables of its process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from benchpool_scheduler.runtime import UnexpectedWorker
from benchpool_scheduler.worker import records
from benchpool_scheduler.worker.worker_id import WorkerId

ORIGIN = "origin.json"
MOST_BYTES = 32 * 2**20


def note_origin(folder: Path, origin: bytes) -> None:
    """Write the description into the folder of a worker's attempt, once; ignore errors."""
    target = folder.parent / ORIGIN
    if not origin or target.exists():
        return
    temporary = target.with_name(f".{ORIGIN}.{os.urandom(8).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(origin)
        temporary.replace(target)


def describe(worker: WorkerId, folder: Path) -> UnexpectedWorker:
    """Return the description of a running worker."""
    process = records.read(str(folder), records.PROCESS) or {}
    since, pid = process.get("started"), process.get("pid")
    found = _child(pid, str(process.get("tag"))) if isinstance(pid, int) else None
    variables, argv, cwd = found or ({}, (), "")
    return UnexpectedWorker(
        worker=worker,
        since=float(since) if isinstance(since, int | float) else None,
        origin=_origin(folder),
        variables=variables,
        argv=argv,
        working_dir=cwd,
    )


def _origin(folder: Path) -> bytes:
    try:
        file = records.open_regular(str(folder.parent / ORIGIN))
    except OSError:
        return b""
    with os.fdopen(file, "rb") as stream:
        return stream.read(MOST_BYTES)


def _child(supervisor: int, tag: str) -> tuple[Mapping[str, str], tuple[str, ...], str] | None:
    """Return variables, command and folder of the process that a supervisor started, or None."""
    try:
        children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    except OSError:
        return None
    for child in children:
        with contextlib.suppress(OSError):
            place = Path("/proc") / child
            words = place.joinpath("environ").read_bytes().decode(errors="replace").split("\0")
            if tag not in words:
                continue
            variables = dict(word.split("=", 1) for word in words if "=" in word)
            argv = place.joinpath("cmdline").read_bytes().decode(errors="replace").split("\0")
            return variables, tuple(argv[:-1]), os.readlink(place / "cwd")
    return None
