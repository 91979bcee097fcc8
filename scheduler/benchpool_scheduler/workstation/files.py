"""Small files of the state folder: written atomically, and private to their owner."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from pathlib import Path
from typing import TypeVar

import msgspec

from benchpool_scheduler.errors import InvalidInput

T = TypeVar("T")


def check_spelling(path: Path, what: str, field: str) -> None:
    """Reject a path that is not valid in UTF-8 or in the locale's encoding.

    Args:
        what: The path in words, for the beginning of a sentence.

    Errors: InvalidInput.
    """
    try:
        os.fsencode(path)
        str(path).encode()
    except UnicodeEncodeError as unspelled:
        shown = str(path).encode(errors="backslashreplace").decode()
        raise InvalidInput(
            f'{what} "{shown}" contains characters that are not UTF-8, or that this locale '
            f"({sys.getfilesystemencoding()}) does not support. Name another path, or set a "
            "locale such as LC_ALL=C.UTF-8.",
            field=field,
        ) from unspelled


def write_private(path: Path, data: bytes) -> None:
    """Replace a file atomically, with mode 0600."""
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
    """Write a value as JSON, atomically and private."""
    write_private(path, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def read_json(path: Path, type_: type[T]) -> T | None:
    """Read a value written by ``write_json``; None for a missing or damaged file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=type_)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def secret(path: Path, size: int = 32) -> str:
    """Return the random secret in this file, created when missing."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        word = secrets.token_urlsafe(size)
        write_private(path, word.encode() + b"\n")
        return word
