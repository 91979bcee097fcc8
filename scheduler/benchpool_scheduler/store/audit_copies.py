"""The audit trail in a backup: copied beside the databases, and put back where it was lost.

Its files only ever grow, so that a copy is the beginning of what is there. A restore never takes
records away: it puts back what is missing, and leaves a trail that has more, or is another one.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

FOLDER = "audit"
NAME = re.compile(rf"{FOLDER}/[0-9]{{12}}\.jsonl")


@dataclass(frozen=True, slots=True)
class PutBack:
    """What became of the files of a copy: put in place, left as they were, or of another trail."""

    put: int = 0
    left: int = 0
    others: int = 0


def copy_into(trail: Path, folder: Path, before: Path | None = None) -> None:
    """Put all whole lines of a trail into a folder. Errors: OSError.

    All files but the newest are never written again: they are linked where the disk is the same, or
    to those of an earlier copy, ``before``.
    """
    files = sorted(trail.glob("*.jsonl"))
    if not files:
        return
    folder.mkdir(mode=0o700)
    for file in files[:-1]:
        copied = before / file.name if before is not None else None
        whole = copied is not None and copied.is_file() and same_size(copied, file)
        link_or_copy(copied if copied is not None and whole else file, folder / file.name)
    data = files[-1].read_bytes()
    newest = folder / files[-1].name
    newest.write_bytes(data[: data.rfind(b"\n") + 1])
    newest.chmod(0o600)


def link_or_copy(source: Path, target: Path) -> None:
    """Put a file that is never written again elsewhere, at no cost where the disk is the same."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def same_size(one: Path, other: Path) -> bool:
    """Tell whether two files have as many bytes."""
    return one.stat().st_size == other.stat().st_size


def put_back(copy: Path, trail: Path) -> PutBack:
    """Put what a trail lacks of a copy in place. Errors: OSError."""
    put = left = others = 0
    for file in sorted(copy.glob("*.jsonl")):
        target, data = trail / file.name, file.read_bytes()
        there = b""
        with contextlib.suppress(FileNotFoundError):
            there = target.read_bytes()
        if others:  # what follows would not be chained to what is there
            others += 1
        elif there.startswith(data):
            left += 1
        elif data.startswith(there) and not _goes_on(trail, file.name):
            trail.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write(target, data)
            put += 1
        else:
            others += 1
    return PutBack(put, left, others)


def _goes_on(trail: Path, name: str) -> bool:
    """Tell whether a trail has files after this one, which a missing one could not precede."""
    return any(it.name > name for it in trail.glob("*.jsonl"))


def _write(target: Path, data: bytes) -> None:
    new = target.with_name(f".{target.name}.restored")
    new.write_bytes(data)
    new.chmod(0o600)
    new.replace(target)
