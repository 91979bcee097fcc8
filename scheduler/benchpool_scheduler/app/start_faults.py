"""Errors of the machine that prevent a start, as a sentence instead of a traceback."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.phrases import REMEDIES
from benchpool_scheduler.store.sqlite import file_system_of

_NO_LOCKS = "Choose a folder on a local disk with --state"

_OF_STARTS: Mapping[int, str] = MappingProxyType(
    {
        errno.ENOLCK: _NO_LOCKS,
        errno.ENOSYS: _NO_LOCKS,
        errno.EOPNOTSUPP: _NO_LOCKS,
        errno.EADDRINUSE: "Stop the program that uses it, or start benchpool again on another port",
        errno.EROFS: "Mount it read-write, or choose another folder with --state",
        errno.EACCES: "Give its account permission, or choose another folder with --state",
        errno.EPERM: "Give its account permission, or choose another folder with --state",
    }
)


def start_error(failed: OSError, state: Path) -> Unavailable:
    """Return the error that keeps benchpool from starting, with a remedy.

    >>> print(start_error(OSError(errno.ENOSPC, "No space left on device"), Path("/s")).message)
    ... # doctest: +ELLIPSIS
    benchpool cannot start: No space left on device. Free space on the disk of ... Running jobs ...
    """
    number = failed.errno
    what = failed.strerror or str(failed)
    of_starts = _OF_STARTS.get(number or 0)
    if of_starts is _NO_LOCKS:
        kind = file_system_of(state) or "unknown"
        what = f"the file system of {state} ({kind}) has no file locks, which it needs ({what})"
    elif failed.filename:
        what = f"{what}: {failed.filename}"
    remedy = of_starts or REMEDIES.get(number, REMEDIES[None])
    remedy = remedy.format(state=state, pid="PID")
    return Unavailable(
        f"benchpool cannot start: {what}. {remedy}. Running jobs and notebook servers continue.",
        code="cannot-start",
    )
