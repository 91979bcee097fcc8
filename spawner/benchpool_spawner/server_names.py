"""Detection of servers of different users that JupyterHub confuses with each other.

For logins, the Hub names a server by user and server joined with a hyphen: server ``y`` of joe and
the default server of joe-y have the same name. The server that starts last gets the other's logins,
and its stop removes them. Such a start is refused before anything is stored for it.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

PREFIX = "jupyterhub-user-"


def joined(user: str, server: str) -> str:
    """Return the name of a server in the Hub's logins.

    >>> joined("joe", "y") == joined("joe-y", "")
    True
    """
    name = f"{PREFIX}{quote(user)}"
    return f"{name}-{quote(server)}" if server else name


def taken_by(db: Any, user: str, server: str) -> tuple[str, str] | None:
    """Return the other user and server that the Hub would confuse with this one, or None.

    The default server of each user counts even if it does not run, so that no user can be locked
    out of it. Named servers count while they run.

    Args:
        db: Database session of the Hub.
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
