"""Who there is in the pool, as administrators see it."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field


class Person(Struct, frozen=True):
    """One user: of the Hub, or named in the configuration.

    Attributes:
        quota: Build GPUs, and ``rule`` where that number comes from; ``held`` of them are in use.
        projects: The projects that the user may send jobs to; ``leads`` those that they lead.
        last_seen: When the Hub saw something of them last; null where it did not.
        known: The Hub knows them. ``jobs``: how many of theirs have not ended.
    """

    name: str
    quota: int
    rule: str
    held: int
    admin: bool = False
    known: bool = True
    groups: list[str] = field(default_factory=list)
    projects: list[str] = field(default_factory=list)
    leads: list[str] = field(default_factory=list)
    last_seen: datetime | None = None
    jobs: int = 0
