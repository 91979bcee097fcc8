"""The check of the SQLite library for ``benchpool doctor``."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

Version = tuple[int, int, int]

FIRST_WITH_RACE: Version = (3, 7, 0)
FIXED: Version = (3, 51, 3)
WITHDRAWN: Version = (3, 52, 0)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of the check: whether benchpool's use is safe, and a sentence for users."""

    version: str
    ok: bool
    text: str


def sqlite_verdict(version: Version | None = None) -> Verdict:
    """Judge a SQLite library, by default the one that Python is linked to.

    Versions 3.7.0 to 3.51.2, and 3.52.0, can lose pages when two connections write or checkpoint
    the write-ahead log at the same time (release notes of SQLite 3.51.3). benchpool has one
    writer that makes all checkpoints, which that race cannot reach.

    >>> sqlite_verdict((3, 53, 0)).text
    'SQLite 3.53.0 has no known bug that affects benchpool.'
    >>> sqlite_verdict((3, 40, 1)).ok
    True
    """
    found = version or sqlite3.sqlite_version_info[:3]
    words = ".".join(str(part) for part in found)
    if found < (3, 37, 0):
        return Verdict(words, False, f"SQLite {words} is too old: 3.37.0 or newer is needed.")
    if found < FIXED or found == WITHDRAWN:
        return Verdict(
            words,
            True,
            f"SQLite {words} can lose pages when two programs write one file (fixed in 3.51.3); "
            "benchpool has a single writer and is safe. Open pool.sqlite with no other program "
            "while it runs; `benchpool backup` copies it safely.",
        )
    return Verdict(words, True, f"SQLite {words} has no known bug that affects benchpool.")
