"""``benchpool login-link``: one more link that logs in once."""

from __future__ import annotations

from pathlib import Path

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.workstation import login_keys
from benchpool_scheduler.workstation.down import find_running
from benchpool_scheduler.workstation.options import account
from benchpool_scheduler.workstation.screen import JsonScreen, Screen, TextScreen
from benchpool_scheduler.workstation.state import StateFolder


def run(state: Path, *, json: bool = False) -> int:
    """Print a new link of a running ``benchpool up``; return 4 when none runs there."""
    screen: Screen = JsonScreen() if json else TextScreen()
    folder = StateFolder(state.expanduser().absolute())
    try:
        running = find_running(folder)
    except Unavailable as error:
        screen.error(error)
        return error.exit_status
    link = login_keys.link(running.url, login_keys.create(folder.login_keys, account()))
    screen.event("login-link", link, url=link)
    return 0
