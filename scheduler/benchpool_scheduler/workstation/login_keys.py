"""Keys of login links: random, kept as a hash, each good for one login.

The Hub's authenticator reads the same folder and deletes a key as it is used.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from pathlib import Path

from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.workstation import files
from benchpool_scheduler.workstation import state as states
from benchpool_scheduler.workstation.options import account
from benchpool_scheduler.workstation.state import find_running

LIFETIME_S = 24 * 3600

# As Authenticator.username_pattern in hub_config/local.py.
_NAME = re.compile(r"[a-z0-9_][a-z0-9_.@-]{0,63}")


def create(keys: Path, user: str) -> str:
    """Make a key that logs ``user`` in once within a day; forget those that are too old."""
    _forget_old(keys)
    key = secrets.token_urlsafe(32)
    content = json.dumps({"user": user, "expires": time.time() + LIFETIME_S})
    files.write_private(keys / hashlib.sha256(key.encode()).hexdigest(), content.encode())
    return key


def for_running(state: Path, user: str | None = None) -> str:
    """Return a new login link of the ``benchpool up`` that runs from this state folder.

    Args:
        state: The state folder.
        user: Whom it logs in; the account that asks when left out.

    Raises:
        Unavailable: None runs there.
        InvalidInput: The name is none that the Hub takes.
    """
    name = account() if user is None else user
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name[:70]!r} is no user name: use small letters, digits and _ . @ -, at most 64.",
            field="user",
        )
    folder = states.at(state)
    running = find_running(folder)
    return link(running.url, create(folder.login_keys, name))


def link(url: str, key: str) -> str:
    """Return the link; ``url`` is where the browser goes."""
    return f"{url.rstrip('/')}/hub/login-link?key={key}"


def _forget_old(keys: Path) -> None:
    for file in keys.iterdir():
        if file.stat().st_mtime < time.time() - LIFETIME_S:
            file.unlink(missing_ok=True)
