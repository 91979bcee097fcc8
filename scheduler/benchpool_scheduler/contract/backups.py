"""Copies of what the service keeps."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class BackupMade(Struct, frozen=True):
    """Answer of ``backup``: where the copy lies on the machine of the service, and what is in it.

    Attributes:
        files: Bytes of each file by its name.
        missing: Sentences about what could not be copied; empty where all is there.
    """

    folder: str
    at: datetime
    files: dict[str, int]
    missing: list[str]
