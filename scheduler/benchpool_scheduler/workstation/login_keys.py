"""Keys of login links: random, stored as a hash, each valid for one login.

The Hub's authenticator reads the same folder and deletes a key when it is used.
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
    """Create a key for one login of ``user`` within a day; delete expired keys."""
    _forget_old(keys)
    key = secrets.token_urlsafe(32)
    content = json.dumps({"user": user, "expires": time.time() + LIFETIME_S})
    files.write_private(keys / hashlib.sha256(key.encode()).hexdigest(), content.encode())
    return key


def for_running(state: Path, user: str | None = None) -> str:
    """Return a new login link of the ``benchpool up`` that runs from this state folder.

    Args:
        state: The state folder.
        user: The user to log in; by default the account that runs this.

    Raises:
        Unavailable: None runs there.
        InvalidInput: The name is invalid for the Hub.
    """
    name = account() if user is None else user
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name[:70]!r} is not a user name: use lowercase letters, digits and _ . @ -, at "
            "most 64.",
            field="user",
        )
    folder = states.at(state)
    running = find_running(folder)
    return link(running.url, create(folder.login_keys, name))


def link(url: str, key: str) -> str:
    """Return the link; ``url`` is the address for browsers."""
    return f"{url.rstrip('/')}/hub/login-link?key={key}"


def _forget_old(keys: Path) -> None:
    for file in keys.iterdir():
        if file.stat().st_mtime < time.time() - LIFETIME_S:
            file.unlink(missing_ok=True)
