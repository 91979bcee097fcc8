"""Free space on the disk of the state folder, and the warning when it is low.

The warning comes before the disk is full. On a full disk no job is accepted, and running jobs lose
their output.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.phrases import data_size

MARK_BYTES = 2 * 2**30
MARK_PART = 20
"""Low means less than ``MARK_BYTES``, or less than 1/``MARK_PART`` of a small disk."""


@dataclass(frozen=True, slots=True)
class DiskRoom:
    """Free space of a disk, in bytes and in files (inodes); ``files`` is 0 if they are not
    counted.
    """

    free: int
    size: int
    free_files: int = 0
    files: int = 0

    @property
    def mark(self) -> int:
        """Threshold of low space, in bytes."""
        return min(MARK_BYTES, self.size // MARK_PART)


def room_of(folder: Path) -> DiskRoom | None:
    """Return the free space on the disk of a folder, or None if it is unknown."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    unit = found.f_frsize
    return DiskRoom(
        found.f_bavail * unit, found.f_blocks * unit, found.f_favail, max(0, found.f_files)
    )


def problem_of(room: DiskRoom | None, folder: Path) -> str | None:
    """Return the warning about a disk, or None if it has enough space.

    >>> folder = Path("/srv/pool")
    >>> problem_of(DiskRoom(3 * 2**30, 2**40), folder)
    >>> said = problem_of(DiskRoom(2**30, 2**40), folder) or ""
    >>> said.split(". ")[0]
    'The disk of /srv/pool is nearly full: 1.0 GiB of 1024.0 GiB are free (threshold: 2.0 GiB)'
    >>> said.split(": ")[-1]
    '`du -sh /srv/pool/*` shows what uses it.'
    """
    if room is None:
        return None
    if room.free < room.mark:
        left = f"{data_size(room.free)} of {data_size(room.size)} are free"
        mark, command = data_size(room.mark), "du -sh"
    elif room.files and room.free_files < room.files // MARK_PART:
        left = f"{room.free_files} of its {room.files} files (inodes) are free"
        mark, command = str(room.files // MARK_PART), "du --inodes -s"
    else:
        return None
    return (
        f"The disk of {folder} is nearly full: {left} (threshold: {mark}). When it is full, "
        "no job is accepted and running jobs lose their output. Free space: "
        f"`{command} {shlex.quote(str(folder))}/*` shows what uses it."
    )
