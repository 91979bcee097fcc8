"""Who asks: made by ``api`` from the Hub's answer, never from what a client says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchpool_scheduler.hub import HubUser


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated user or service.

    Attributes:
        name: The Hub's user or service name.
        admin: Whether the Hub calls it an administrator.
        groups: The Hub groups of the user.
        kind: ``service`` is the Hub itself or one of its services (the spawner's token), ``node``
            the agent of a node of a cluster, ``cluster`` pods of others that it lets in.
    """

    name: str
    admin: bool = False
    groups: frozenset[str] = frozenset()
    kind: Literal["user", "service", "node", "cluster"] = "user"

    def as_hub_user(self) -> HubUser:
        """Return what the Hub's own list says of a user, without what groups grant."""
        return HubUser(self.name, self.admin, dict.fromkeys(self.groups))
