"""Users whom the Hub had and has no more, while jobs of theirs go on.

A user is a name alone: who is added again by the same name has what the former one left.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from benchpool_scheduler.phrases import count, visible
from benchpool_scheduler.store.records import JobRecord

MOST_NAMED = 5


@dataclass(slots=True)
class LeftUsers:
    """What was seen of the Hub's users since the service started."""

    _seen: set[str] = field(default_factory=set)
    _left: set[str] = field(default_factory=set)
    _back: dict[str, float] = field(default_factory=dict)

    def learn(self, names: Collection[str], now: float) -> None:
        """Take up whom the Hub knows at an instant, in seconds since the epoch."""
        for name in self._left & set(names):
            self._back[name] = now
        self._left = (self._seen | self._left) - set(names)
        self._seen = set(names)

    def told(self, live: Sequence[JobRecord]) -> str | None:
        """Return in sentences what is left of whom, None for nothing.

        Args:
            live: Jobs that have not ended.

        >>> left = LeftUsers()
        >>> left.learn({"ada", "zoe"}, 1.0)
        >>> left.learn({"ada"}, 2.0)
        >>> left.told([])
        """
        said = [
            _of_left(name, sum(job.user == name for job in live)) for name in sorted(self._left)
        ]
        said += [
            _of_back(name, sum(job.user == name and job.submitted < at for job in live))
            for name, at in sorted(self._back.items())
            if name not in self._left
        ]
        found = [sentence for sentence in said if sentence]
        more = len(found) - MOST_NAMED
        end = [f"So it is with {count(more, 'user')} more."] if more > 0 else []
        return " ".join([*found[:MOST_NAMED], *end]) or None


def _of_left(name: str, jobs: int) -> str:
    if not jobs:
        return ""
    return (
        f"The Hub does not know {visible(name)} any more, and {count(jobs, 'job')} of theirs "
        f"{'has' if jobs == 1 else 'have'} not ended: `benchpool jobs --user {visible(name)} "
        "--live` lists what to cancel, unless the user is added again."
    )


def _of_back(name: str, jobs: int) -> str:
    if not jobs:
        return ""
    return (
        f"{visible(name)} was deleted from the Hub and added again, and has {count(jobs, 'job')} "
        "from before. If this is another person, cancel what `benchpool jobs --user "
        f"{visible(name)} --live` lists."
    )
