"""Users of the pool: the Hub's users and the build quotas of users who start servers (R2, R3).

Built once for a response of the Hub and a configuration, since every submission needs the sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.core.benches.quotas import EffectiveQuota, effective_quota
from benchpool_scheduler.hub import HubUser


@dataclass(frozen=True, slots=True)
class Users:
    """The users of a pool.

    Attributes:
        users: Users as the Hub reported them. ``configuration``: the one then in force.
        by_name: The same by name.
        quota_sum: Sum of the build quotas of all users who may start servers: the Hub's users and
            users that the configuration names.
    """

    users: tuple[HubUser, ...]
    configuration: Configuration
    by_name: Mapping[str, HubUser]
    quota_sum: int

    @classmethod
    def of(cls, users: tuple[HubUser, ...], configuration: Configuration) -> Users:
        """Look up the build quotas of all users."""
        by_name = {user.name: user for user in users}
        groups = {name: user.groups for name, user in by_name.items() if user.may_start_servers}
        names = groups.keys() | configuration.build.users.keys()
        found = (quota_of(configuration, name, groups.get(name, {})).quota for name in names)
        return cls(users, configuration, by_name, sum(found))


def quota_of(
    configuration: Configuration, user: str, groups: Mapping[str, int | None]
) -> EffectiveQuota:
    """Return a user's build quota and the rule it comes from (R2).

    ``groups`` maps each group of the user to its group property, None without one.
    """
    build = configuration.build
    return effective_quota(
        user,
        groups,
        user_settings=build.users,
        group_settings=build.groups,
        default=build.default,
    )
