"""Keys of login links: random, kept as a hash, each good for one login.

The Hub's authenticator reads the same folder and deletes a key as it is used.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from pathlib import Path

from benchpool_scheduler.workstation import files

LIFETIME_S = 24 * 3600


def create(keys: Path, user: str) -> str:
    """Make a key that logs ``user`` in once within a day; forget those that are too old."""
    _forget_old(keys)
    key = secrets.token_urlsafe(32)
    content = json.dumps({"user": user, "expires": time.time() + LIFETIME_S})
    files.write_private(keys / hashlib.sha256(key.encode()).hexdigest(), content.encode())
    return key


def link(url: str, key: str) -> str:
    """Return the link; ``url`` is where the browser goes."""
    return f"{url.rstrip('/')}/hub/login-link?key={key}"


def _forget_old(keys: Path) -> None:
    for file in keys.iterdir():
        if file.stat().st_mtime < time.time() - LIFETIME_S:
            file.unlink(missing_ok=True)
