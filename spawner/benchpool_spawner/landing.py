"""Where people are taken after they have logged in, unless they were on their way elsewhere."""

from __future__ import annotations

from typing import Any


def after_login(user: Any) -> str:
    """Return the Hub's page for a user: administrators have more to see than a form to start.

    >>> from types import SimpleNamespace
    >>> after_login(SimpleNamespace(admin=True)), after_login(SimpleNamespace(admin=False))
    ('home', 'spawn')
    """
    return "home" if user.admin else "spawn"


def default_url(handler: Any) -> str:
    """Return the same as ``JupyterHub.default_url`` wants it; empty is the Hub's own choice.

    That is a server that runs, else the form to start one.
    """
    user = handler.current_user
    if user is None or after_login(user) != "home":
        return ""
    return f"{handler.hub.base_url}home"
