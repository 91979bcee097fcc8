"""By which names an exemption from the rule for idle benches meets a server, as the Hub has it."""

from __future__ import annotations

from benchpool_scheduler.service.observed.observed import SchedulerState


def names(observed: SchedulerState, user: str, server: str) -> frozenset[str]:
    """Return its user, the user's groups and its profile, as ``IdleExemption.who`` has them.

    The profile is that of a server that runs; of others it is not known.
    """
    known = observed.now.hub_user(user)
    found = {user, *(f"group:{it}" for it in (known.groups if known else ()))}
    for it in observed.settings.directory.servers() or ():
        if (it.user, it.name) == (user, server) and it.profile:
            found.add(f"profile:{it.profile}")
    return frozenset(found)
