"""Servers of different users that JupyterHub takes for one and the same.

The Hub knows a server, when people log in to it, by user and server joined with a hyphen: server
``y`` of joe and the server of joe-y are one to it. The one that starts last gets the other's
logins, and its stop takes them away. Such a start is refused before anything of it is written.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

PREFIX = "jupyterhub-user-"


def joined(user: str, server: str) -> str:
    """Return by which the Hub knows a server.

    >>> joined("joe", "y") == joined("joe-y", "")
    True
    """
    name = f"{PREFIX}{quote(user)}"
    return f"{name}-{quote(server)}" if server else name


def taken_by(db: Any, user: str, server: str) -> tuple[str, str] | None:
    """Return the other user and server that the Hub would take this one for; None for nobody.

    Users count with the server that every user has, whether it runs or not: nobody may lock them
    out of it. Named servers count while they run.

    Args:
        db: The Hub's database session.
    """
    from jupyterhub import orm

    mine = joined(user, server)
    if server:
        other = orm.User.find(db, unquote(mine.removeprefix(PREFIX)))
        if other is not None:
            return other.name, ""
    running = (
        db.query(orm.User.name, orm.Spawner.name)
        .join(orm.Spawner, orm.Spawner.user_id == orm.User.id)
        .filter(orm.Spawner.name != "", orm.Spawner.server_id.isnot(None))
    )
    for name, named in running:
        if (name, named) != (user, server) and joined(name, named) == mine:
            return name, named
    return None
