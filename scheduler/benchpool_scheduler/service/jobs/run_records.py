"""Recorded environments of runs, read from users' result files if the service has them."""

from __future__ import annotations

import os
import stat
import tarfile
from pathlib import Path

import msgspec

from benchpool_scheduler.contract.run_environment import MOST_BYTES, NAME, RunEnvironment


def recorded(output: Path, packed: Path | None) -> RunEnvironment | None:
    """Return the environment that a run recorded, or None if there is no valid record.

    Args:
        output: The folder of the job's results; its contents are untrusted.
        packed: The results that a remote worker has sent (tar).
    """
    data = _lying(output / NAME)
    if data is None and packed is not None:
        data = _sent(packed)
    try:
        return None if data is None else msgspec.json.decode(data, type=RunEnvironment)
    except msgspec.DecodeError:
        return None


def _lying(file: Path) -> bytes | None:
    """Return the contents of a regular file without following a link or blocking, or None."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(file, flags), "rb") as opened:
            is_file = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
            return opened.read(MOST_BYTES) if is_file else None
    except OSError:
        return None


def _sent(packed: Path) -> bytes | None:
    try:
        with tarfile.open(packed, "r:") as archive:
            for member in archive:
                if member.name == NAME and member.isfile():
                    content = archive.extractfile(member)
                    return None if content is None else content.read(MOST_BYTES)
    except (OSError, tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError):
        return None
    return None
