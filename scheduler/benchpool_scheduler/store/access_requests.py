"""The file of access requests for projects, and its copies in backups.

The file is small and written whole. A restore adds a request only where its user has none for the
same project now.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchpool_scheduler.contract.access import AccessRequest
from benchpool_scheduler.store import whole_files

FILE = "access-requests.json"
"""Name of the file, in a backup too."""

Requests = dict[tuple[str, str], AccessRequest]


def read(file: Path) -> Requests:
    """Return the requests by user and project; empty when the file cannot be read."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=list[AccessRequest])
    except (OSError, msgspec.DecodeError):
        return {}
    return {(one.user, one.project): one for one in found}


def write(file: Path, requests: Iterable[AccessRequest]) -> None:
    """Replace the stored requests by these. Errors: OSError, and then the file is unchanged."""
    whole_files.write(file, msgspec.json.encode(list(requests)))


def copy_into(file: Path, folder: Path) -> None:
    """Copy the file into a folder, if it exists. Errors: OSError."""
    if file.is_file():
        whole_files.write(folder / FILE, file.read_bytes())


def put_back(copy: Path, file: Path) -> int:
    """Add the missing requests from a copy and return their number. Errors: OSError."""
    there = read(file)
    missing = {key: one for key, one in read(copy).items() if key not in there}
    if missing:
        write(file, {**missing, **there}.values())
    return len(missing)
