"""Names by which an exemption from the idle-bench rule matches a server, from the Hub's data."""

from __future__ import annotations

from benchpool_scheduler.service.observed.observed import SchedulerState


def names(observed: SchedulerState, user: str, server: str) -> frozenset[str]:
    """Return the user, the user's groups and the server's profile, as in ``IdleExemption.who``.

    The profile is known only for a running server.
    """
    known = observed.now.hub_user(user)
    found = {user, *(f"group:{it}" for it in (known.groups if known else ()))}
    for it in observed.settings.directory.servers() or ():
        if (it.user, it.name) == (user, server) and it.profile:
            found.add(f"profile:{it.profile}")
    return frozenset(found)
