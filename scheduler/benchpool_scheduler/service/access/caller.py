"""The authenticated caller of a request.

``api`` builds it from the Hub's answer, never from data that the client sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchpool_scheduler.hub import HubUser


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated user or service.

    Attributes:
        name: The Hub's user or service name.
        admin: Whether the Hub reports the caller as an administrator.
        groups: The Hub groups of the user.
        kind: ``service`` is the Hub itself or one of its services (the spawner's token), ``node``
            the agent of a cluster node, ``cluster`` a foreign workload that the cluster admits.
    """

    name: str
    admin: bool = False
    groups: frozenset[str] = frozenset()
    kind: Literal["user", "service", "node", "cluster"] = "user"

    def as_hub_user(self) -> HubUser:
        """Return the caller as a Hub user, without the quotas that groups grant."""
        return HubUser(self.name, self.admin, dict.fromkeys(self.groups))
