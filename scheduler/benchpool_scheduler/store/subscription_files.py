"""The files of notification subscriptions, and their copies in backups.

The files are small and written whole. A restore adds the subscriptions of users who have none now.
It restores the delivery log only where there is none. It restores the site's settings, with the
password of its mail server, only where there is no such file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from benchpool_scheduler.store import whole_files

SUBSCRIPTIONS = "notifications.json"
DELIVERY_LOG = "notifications-told.json"
FILES = (SUBSCRIPTIONS, DELIVERY_LOG)
"""Names of the files, in a backup too."""
SITE = "notifications.yaml"
"""Name in a backup of the administrators' notification settings."""


def copy_into(source: Path, folder: Path) -> None:
    """Copy the existing files of a folder into another. Errors: OSError."""
    for name in FILES:
        if (source / name).is_file():
            whole_files.write(folder / name, (source / name).read_bytes())


def put_back(copy: Path, folder: Path) -> int:
    """Add missing subscriptions from a copy and return their number. Errors: OSError."""
    there = _by_user(folder / SUBSCRIPTIONS)
    missing = {
        user: one for user, one in _by_user(copy / SUBSCRIPTIONS).items() if user not in there
    }
    if missing:
        all_ = list({**missing, **there}.values())
        whole_files.write(folder / SUBSCRIPTIONS, msgspec.json.encode(all_))
    if (copy / DELIVERY_LOG).is_file() and not (folder / DELIVERY_LOG).exists():
        whole_files.write(folder / DELIVERY_LOG, (copy / DELIVERY_LOG).read_bytes())
    return len(missing)


def copy_site(file: Path, folder: Path) -> None:
    """Copy the administrators' settings into a folder, if they exist. Errors: OSError."""
    if file.is_file():
        whole_files.write(folder / SITE, file.read_bytes())


def put_site_back(copy: Path, file: Path) -> bool:
    """Restore the settings if they are missing; return whether this was done. Errors: OSError."""
    if file.exists() or not (copy / SITE).is_file():
        return False
    whole_files.write(file, (copy / SITE).read_bytes())
    return True


def _by_user(file: Path) -> dict[str, dict[str, Any]]:
    """Return the subscriptions by user; empty when the file cannot be read."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=list[dict[str, Any]])
    except (OSError, msgspec.DecodeError):
        return {}
    return {str(one.get("user", "")): one for one in found}
