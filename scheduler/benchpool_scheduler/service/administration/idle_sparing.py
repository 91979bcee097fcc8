"""Exemptions of the configuration in the dry run of the rule for idle benches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from benchpool_scheduler import phrases
from benchpool_scheduler.configuration.settings import IdleExemption
from benchpool_scheduler.contract.use import IdleExempt

Server = tuple[str, str]
"""A user, and the name of a server."""


class Sparing:
    """Counter of what each exemption spared; if several apply, the one that ends last counts.

        >>> from datetime import date
        >>> sparing = Sparing([IdleExemption("group:exam", date(2026, 12, 31))], "UTC")
        >>> sparing.spared({"ann", "group:exam"}, ("ann", ""), 12.0)
        >>> print(next(sparing.notes()))
        1 server is left out in part or whole, with 12.0 GPU-hours, as an exemption applies to it: \
    group:exam until 2026-12-31. Groups and profiles are as the Hub has them now.
    """

    def __init__(self, exempt: Sequence[IdleExemption], zone: str) -> None:
        self._exempt = exempt
        self._zone = zone
        self._ends = {one: one.end(zone) for one in exempt}
        self._spared: dict[IdleExemption, dict[Server, float]] = defaultdict(dict)

    def until(self, names: Collection[str]) -> float:
        """Return the end of the exemption of these names; minus infinity if there is none."""
        one = self._longest(names)
        return float("-inf") if one is None else self._ends[one]

    def spared(self, names: Collection[str], server: Server, gpu_h: float) -> None:
        """Count GPU-hours of a server that the exemption of these names spared."""
        one = self._longest(names)
        if one is not None and gpu_h > 0:
            self._spared[one][server] = self._spared[one].get(server, 0.0) + gpu_h

    @property
    def servers(self) -> int:
        """Number of servers that were spared."""
        return len({server for each in self._spared.values() for server in each})

    def notes(self) -> Iterator[str]:
        """Yield one sentence that names the exemptions that applied; nothing if none did."""
        if not self._spared:
            return
        hours = sum(sum(each.values()) for each in self._spared.values())
        rules = ", ".join(
            f"{one.who} until {one.until}" for one in self._exempt if one in self._spared
        )
        few, many = ("is", "it") if self.servers == 1 else ("are", "them")
        yield (
            f"{phrases.count(self.servers, 'server')} {few} left out in part or whole, with "
            f"{phrases.gpu_hours(hours)} GPU-hours, as an exemption applies to {many}: {rules}. "
            "Groups and profiles are as the Hub has them now."
        )

    def answer(self, now: float) -> list[IdleExempt]:
        """Return all exemptions of the configuration, with what each spared."""
        return [
            IdleExempt(
                who=one.who,
                until=one.until,
                in_force=self._ends[one] > now,
                why=one.why,
                servers=len(self._spared.get(one, {})),
                gpu_h=round(sum(self._spared.get(one, {}).values()), 3),
            )
            for one in self._exempt
        ]

    def _longest(self, names: Collection[str]) -> IdleExemption | None:
        met = (one for one in self._exempt if one.who in names)
        return max(met, key=lambda one: self._ends[one], default=None)
