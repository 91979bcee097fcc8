"""Uploaded contents in copies: those that jobs which have not ended need.

A content is named by its hash and never changes, so that a copy on the same disk links it.
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
    """How many contents were put back, and how many of the copy are damaged."""

    put: int
    damaged: int


def copy_into(objects: Path, copy: Path, hashes: Collection[str]) -> None:
    """Copy these contents; one that has gone is needed by nobody any more. Errors: OSError."""
    for sha256 in sorted(hashes):
        target = copy / sha256[:2] / sha256
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileNotFoundError):
            audit_copies.link_or_copy(objects / sha256[:2] / sha256, target)


def put_back(copy: Path, objects: Path) -> ContentsPutBack:
    """Put back the contents that are not there; those that are not what they say stay out."""
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
