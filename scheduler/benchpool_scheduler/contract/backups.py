"""Backups of the service's data."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class BackupMade(Struct, frozen=True):
    """Answer of ``backup``: the path of the copy on the service's machine, and its contents.

    Attributes:
        files: Size of each file in bytes, by its name.
        missing: Sentences about what could not be copied; empty for a complete copy.
    """

    folder: str
    at: datetime
    files: dict[str, int]
    missing: list[str]
