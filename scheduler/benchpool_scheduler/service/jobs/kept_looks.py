"""Saved stacks of jobs that hung, kept with the job's files until these are removed."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec
from msgspec.structs import replace

from benchpool_scheduler.contract.stacks import Peek, StackGroup
from benchpool_scheduler.store import whole_files
from benchpool_scheduler.worker.folders import Folders

log = logging.getLogger(__name__)

FOLDER = "hanging"
MOST_BYTES = 8 << 20
"""Maximum size of saved stacks, in bytes; further groups of workers are left out."""


class KeptLooks:
    """Files below the folder of each job, one per attempt that hung. All methods block."""

    def __init__(self, state: Path) -> None:
        self._folders = Folders(state)

    def keep(self, look: Peek) -> None:
        """Save the stacks. Errors: OSError."""
        folder = self._folders.job(look.job) / FOLDER
        whole_files.write(folder / f"{look.attempt}.json", msgspec.json.encode(look))

    def newest(self, job: str) -> Peek | None:
        """Return the newest saved stacks of a job, or None if there are none or they are
        unreadable.
        """
        folder = self._folders.job(job) / FOLDER
        files = [path for path in folder.glob("*.json") if path.stem.isdecimal()]
        if not files:
            return None
        newest = max(files, key=lambda path: int(path.stem))
        try:
            return msgspec.json.decode(newest.read_bytes(), type=Peek)
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("%s cannot be read (%s)", newest, error)
            return None


def bounded(look: Peek) -> Peek:
    """Return the stacks, with only as many groups as are saved."""
    kept: list[StackGroup] = []
    left = MOST_BYTES
    for group in look.groups:
        left -= len(msgspec.json.encode(group))
        if left < 0:
            text = f"{look.text} Only {len(kept)} of them are kept."
            return replace(look, groups=kept, text=text)
        kept.append(group)
    return look


def as_text(look: Peek) -> str:
    """Return the stacks as a text file for users."""
    head = f"Attempt {look.attempt}, {look.at:%Y-%m-%d %H:%M:%S} UTC: {look.text}"
    return "\n".join((head, *look.lines(), ""))
