"""The files of who is told what, and how they go along in copies.

They are small and written whole. A copy that is put back adds the subscriptions of users who have
none now; what was told goes back only where nothing is known of that, and what the site allows,
with the password of its mail server, only where there is no such file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from benchpool_scheduler.store import whole_files

SUBSCRIPTIONS = "notifications.json"
TOLD = "notifications-told.json"
FILES = (SUBSCRIPTIONS, TOLD)
"""Their names, in a copy too."""
SITE = "notifications.yaml"
"""What administrators allow: the file that they write, of this name in a copy."""


def copy_into(source: Path, folder: Path) -> None:
    """Put the files of a folder into another, those that are there. Errors: OSError."""
    for name in FILES:
        if (source / name).is_file():
            whole_files.write(folder / name, (source / name).read_bytes())


def put_back(copy: Path, folder: Path) -> int:
    """Add the subscriptions of a copy that are not there; return how many. Errors: OSError."""
    there = _by_user(folder / SUBSCRIPTIONS)
    missing = {
        user: one for user, one in _by_user(copy / SUBSCRIPTIONS).items() if user not in there
    }
    if missing:
        all_ = list({**missing, **there}.values())
        whole_files.write(folder / SUBSCRIPTIONS, msgspec.json.encode(all_))
    if (copy / TOLD).is_file() and not (folder / TOLD).exists():
        whole_files.write(folder / TOLD, (copy / TOLD).read_bytes())
    return len(missing)


def copy_site(file: Path, folder: Path) -> None:
    """Put what administrators allow into a folder, where they wrote it. Errors: OSError."""
    if file.is_file():
        whole_files.write(folder / SITE, file.read_bytes())


def put_site_back(copy: Path, file: Path) -> bool:
    """Put it back where there is none; tell whether it was. Errors: OSError."""
    if file.exists() or not (copy / SITE).is_file():
        return False
    whole_files.write(file, (copy / SITE).read_bytes())
    return True


def _by_user(file: Path) -> dict[str, dict[str, Any]]:
    """Return the subscriptions by user; none where the file cannot be read."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=list[dict[str, Any]])
    except (OSError, msgspec.DecodeError):
        return {}
    return {str(one.get("user", "")): one for one in found}
