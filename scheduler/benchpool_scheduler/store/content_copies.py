"""Uploaded contents in backups: those that unfinished jobs need.

A content is named by its hash and never changes, so a copy on the same disk is a hard link.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.store import audit_copies

FOLDER = "objects"
NAME = re.compile(rf"{FOLDER}/[0-9a-f]{{2}}/[0-9a-f]{{64}}")


@dataclass(frozen=True, slots=True)
class ContentsPutBack:
    """Number of contents that were restored, and of damaged contents in the copy."""

    put: int
    damaged: int


def copy_into(objects: Path, copy: Path, hashes: Collection[str]) -> None:
    """Copy these contents; missing ones are skipped, as no job needs them. Errors: OSError."""
    for sha256 in sorted(hashes):
        target = copy / sha256[:2] / sha256
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileNotFoundError):
            audit_copies.link_or_copy(objects / sha256[:2] / sha256, target)


def put_back(copy: Path, objects: Path) -> ContentsPutBack:
    """Restore missing contents; those that do not match their hash are skipped."""
    put = damaged = 0
    for file in sorted(copy.glob("*/*")):
        name = f"{FOLDER}/{file.relative_to(copy).as_posix()}"
        target = objects / file.relative_to(copy)
        if not NAME.fullmatch(name) or not file.is_file() or target.exists():
            continue
        with file.open("rb") as content:
            known = hashlib.file_digest(content, "sha256").hexdigest()
        if known != file.name:
            damaged += 1
            continue
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = target.with_name(f".{file.name}.restored")
        audit_copies.link_or_copy(file, new)
        new.replace(target)
        put += 1
    return ContentsPutBack(put, damaged)
