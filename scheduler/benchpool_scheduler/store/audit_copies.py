"""Copies of the audit trail in a backup, and their restore.

The files of the trail only grow, so a copy is a prefix of the trail. A restore never removes
records: it adds missing ones, and leaves a trail that is longer or different unchanged.
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
    """Number of files that were restored, left unchanged, or belong to another trail."""

    put: int = 0
    left: int = 0
    others: int = 0


def copy_into(trail: Path, folder: Path, before: Path | None = None) -> None:
    """Copy all complete lines of a trail into a folder. Errors: OSError.

    All files but the newest are final. They are hard-linked where the file system allows it, to an
    earlier copy ``before`` if it has them.
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
    """Link a file that is never written again, or copy it when it cannot be linked."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def same_size(one: Path, other: Path) -> bool:
    """Return whether two files have the same size."""
    return one.stat().st_size == other.stat().st_size


def put_back(copy: Path, trail: Path) -> PutBack:
    """Restore the records of a copy that the trail lacks. Errors: OSError."""
    put = left = others = 0
    for file in sorted(copy.glob("*.jsonl")):
        target, data = trail / file.name, file.read_bytes()
        there = b""
        with contextlib.suppress(FileNotFoundError):
            there = target.read_bytes()
        if others:  # the next files would not continue this trail's chain
            others += 1
        elif there.startswith(data):
            left += 1
        elif data.startswith(there) and not _has_later_files(trail, file.name):
            trail.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write(target, data)
            put += 1
        else:
            others += 1
    return PutBack(put, left, others)


def _has_later_files(trail: Path, name: str) -> bool:
    """Return whether a trail has later files, which a missing file cannot precede."""
    return any(it.name > name for it in trail.glob("*.jsonl"))


def _write(target: Path, data: bytes) -> None:
    new = target.with_name(f".{target.name}.restored")
    new.write_bytes(data)
    new.chmod(0o600)
    new.replace(target)
