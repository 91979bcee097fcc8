"""Disk use of users' homes, and refusal of jobs of users whose home exceeds its limit.

Homes are counted if they are folders of this machine. On a cluster each home is a volume, whose
size is the limit. A count is made when the user submits a job, and cached. A user over the limit is
counted again each time, so that deleting files takes effect at once.
"""

from __future__ import annotations

import asyncio
import pwd
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.errors import TooLarge
from benchpool_scheduler.phrases import data_size
from benchpool_scheduler.service.jobs import disk_use
from benchpool_scheduler.service.observed.observed import SchedulerState

GIB = 1024**3
GOOD_S = 600.0
PATIENCE_S = 2.0
"""Timeout of a submission for a count, in seconds; the count continues and applies to the next
one.
"""


@dataclass(frozen=True, slots=True)
class _Count:
    at: float
    used: int


class HomeQuota:
    """Disk use of the homes of submitters."""

    def __init__(self, observed: SchedulerState) -> None:
        self._observed = observed
        self._counts: dict[str, _Count] = {}
        self._counting: dict[str, asyncio.Task[None]] = {}

    async def check(self, user: str) -> None:
        """Refuse a job if the home of its user is over the limit. Errors: TooLarge."""
        most = self._observed.now.configuration.budgets.home_gib
        home = None if most is None else self._home(user)
        if most is None or home is None:
            return
        known, now = self._counts.get(user), self._observed.settings.clock.now()
        if known is None or known.used > most * GIB or now - known.at > GOOD_S:
            await asyncio.wait([self._count(user, home)], timeout=PATIENCE_S)
        known = self._counts.get(user)
        if known is not None and known.used > most * GIB:
            raise TooLarge(
                f"The home of {user} holds {data_size(known.used)}; {most} GiB are allowed. Delete "
                f"files in {home}, and send the job again; an administrator can raise "
                "budgets.home_gib.",
                code="home-full",
                numbers={"bytes": known.used, "limit": most * GIB},
            )

    async def close(self) -> None:
        """Cancel the counts in progress."""
        for task in self._counting.values():
            task.cancel()
        await asyncio.gather(*self._counting.values(), return_exceptions=True)

    def _home(self, user: str) -> Path | None:
        settings = self._observed.settings
        if settings.containers is not None:
            return None
        if settings.accounts == "shared":
            home = settings.state / "homes" / user
            return home if home.is_dir() else None
        try:
            return Path(pwd.getpwnam(user).pw_dir)
        except KeyError:
            return None

    def _count(self, user: str, home: Path) -> asyncio.Task[None]:
        if user not in self._counting:
            task = asyncio.create_task(self._run(user, home))
            self._counting[user] = task
            task.add_done_callback(lambda _: self._counting.pop(user))
        return self._counting[user]

    async def _run(self, user: str, home: Path) -> None:
        used = await disk_use.counted([home])
        if home in used:
            self._counts[user] = _Count(self._observed.settings.clock.now(), used[home])
