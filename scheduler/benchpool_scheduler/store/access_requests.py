"""The file of wishes to belong to projects, and how it goes along in copies.

It is small and written whole. A copy that is put back adds the wishes of those who have none for
that project now.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchpool_scheduler.contract.access import AccessRequest
from benchpool_scheduler.store import whole_files

FILE = "access-requests.json"
"""Its name, in a copy too."""

Wishes = dict[tuple[str, str], AccessRequest]


def read(file: Path) -> Wishes:
    """Return the wishes by user and project; none where the file cannot be read."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=list[AccessRequest])
    except (OSError, msgspec.DecodeError):
        return {}
    return {(one.user, one.project): one for one in found}


def write(file: Path, wishes: Iterable[AccessRequest]) -> None:
    """Keep these wishes and no others. Errors: OSError, then the file is as it was."""
    whole_files.write(file, msgspec.json.encode(list(wishes)))


def copy_into(file: Path, folder: Path) -> None:
    """Put the file into a folder, where there is one. Errors: OSError."""
    if file.is_file():
        whole_files.write(folder / FILE, file.read_bytes())


def put_back(copy: Path, file: Path) -> int:
    """Add the wishes of a copy that are not there; return how many. Errors: OSError."""
    there = read(file)
    missing = {key: one for key, one in read(copy).items() if key not in there}
    if missing:
        write(file, {**missing, **there}.values())
    return len(missing)
