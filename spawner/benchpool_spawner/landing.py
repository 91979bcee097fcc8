"""Page after login for users without another target."""

from __future__ import annotations

from typing import Any


def after_login(user: Any) -> str:
    """Return the Hub's page for a user. Administrators get the home page instead of the start form.

    >>> from types import SimpleNamespace
    >>> after_login(SimpleNamespace(admin=True)), after_login(SimpleNamespace(admin=False))
    ('home', 'spawn')
    """
    return "home" if user.admin else "spawn"


def default_url(handler: Any) -> str:
    """Return the page in the form of ``JupyterHub.default_url``. Empty for the Hub's own choice.

    That is a running server, else the form to start one.
    """
    user = handler.current_user
    if user is None or after_login(user) != "home":
        return ""
    return f"{handler.hub.base_url}home"
