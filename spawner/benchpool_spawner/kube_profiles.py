"""Which profiles of ``profile_list`` are open to whom (pure).

A profile may name ``allowed_groups`` and ``allowed_users``; one that names neither is open to all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchpool_scheduler.errors import Refused

Profile = Mapping[str, Any]


def open_to(user: str, groups: frozenset[str], profiles: Sequence[Profile]) -> list[Profile]:
    """Return the profiles that a user may choose, in their order.

    Raises:
        Refused: There are profiles, and none is open to the user.

    >>> large = {"display_name": "8 GPUs", "allowed_groups": ["staff"]}
    >>> [p["display_name"] for p in open_to("susan", frozenset({"staff"}), [large])]
    ['8 GPUs']
    >>> open_to("joe", frozenset(), [large])
    Traceback (most recent call last):
    ...
    benchpool_scheduler.errors.Refused: None of the 1 profiles of servers here is open to joe: ask \
an administrator to let one of your groups (none) use one.
    """
    mine = [profile for profile in profiles if _is_open(profile, user, groups)]
    if profiles and not mine:
        raise Refused(
            f"None of the {len(profiles)} profiles of servers here is open to {user}: ask an "
            f"administrator to let one of your groups ({', '.join(sorted(groups)) or 'none'}) use "
            "one.",
            code="no-profile",
            field="profile",
            numbers={"profiles": len(profiles)},
        )
    return mine


def _is_open(profile: Profile, user: str, groups: frozenset[str]) -> bool:
    users, some = profile.get("allowed_users"), profile.get("allowed_groups")
    if users is None and some is None:
        return True
    return user in (users or ()) or not groups.isdisjoint(some or ())
