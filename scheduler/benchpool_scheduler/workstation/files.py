"""Small files of the state folder: written whole, and for their owner only."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def write_private(path: Path, data: bytes) -> None:
    """Put a file in place whole, with mode 0600; a reader sees the old one or the new one."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: object) -> None:
    """Write a value as JSON, whole and private."""
    write_private(path, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def read_json(path: Path, type_: type[T]) -> T | None:
    """Read what ``write_json`` wrote; None where there is no such file, or a damaged one."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=type_)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def secret(path: Path, size: int = 32) -> str:
    """Return the random word that this file keeps, made when there is none yet."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        word = secrets.token_urlsafe(size)
        write_private(path, word.encode() + b"\n")
        return word
