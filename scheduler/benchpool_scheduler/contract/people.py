"""Users of the pool, as administrators see them."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field


class Person(Struct, frozen=True):
    """User of the Hub, or named in the configuration.

    Attributes:
        quota: Build GPUs of the user.
        rule: Rule that sets the quota.
        held: Build GPUs in use.
        known: The Hub knows the user.
        projects: Projects to which the user may send jobs.
        leads: Projects that the user leads.
        last_seen: Last activity that the Hub saw; null for none.
        jobs: Number of the user's jobs that have not ended.
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
