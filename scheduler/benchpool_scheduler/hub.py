"""What the service asks of the JupyterHub: who the users are and which servers run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class HubUser:
    """A user of the Hub.

    ``groups`` maps each group to its group property ``benchpool.build_quota``, None without one.
    """

    name: str
    admin: bool = False
    groups: Mapping[str, int | None] = field(default_factory=dict)
    may_start_servers: bool = True


@dataclass(frozen=True, slots=True)
class HubServer:
    """A notebook server that runs or is being started; the default server's name is empty."""

    user: str
    name: str
    ready: bool = True


class Directory(Protocol):
    """The Hub's users and servers; the reads answer from memory."""

    async def refresh(self) -> None:
        """Ask the Hub again. Errors: Unavailable; the last answer then stays."""

    def users(self) -> tuple[HubUser, ...]:
        """Return all users as of the last refresh."""

    def servers(self) -> tuple[HubServer, ...] | None:
        """Return all active servers as of the last refresh, None while nothing is known."""


@dataclass
class StaticDirectory:
    """A directory that knows what it was given: for use without a Hub, and in tests."""

    known_users: tuple[HubUser, ...] = ()
    known_servers: tuple[HubServer, ...] | None = None

    async def refresh(self) -> None:
        """Do nothing."""

    def users(self) -> tuple[HubUser, ...]:
        """Return the users it was given."""
        return self.known_users

    def servers(self) -> tuple[HubServer, ...] | None:
        """Return the servers it was given."""
        return self.known_servers
