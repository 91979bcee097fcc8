"""Users who were removed or renamed in the Hub while they have unfinished jobs.

A user is identified only by name: a new user of the same name gets the jobs of the former one. The
Hub keeps the creation time when it renames a user, which identifies the new name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchpool_scheduler.hub import HubUser
from benchpool_scheduler.phrases import count, visible
from benchpool_scheduler.store.records import JobRecord

MOST_NAMED = 5


@dataclass(slots=True)
class LeftUsers:
    """The Hub's users as observed since the service started.

    Attributes:
        renamed: The present name of each user that the Hub has renamed, by the former one.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)
    _seen: Mapping[str, float | None] = field(default_factory=dict)
    _left: Mapping[str, float | None] = field(default_factory=dict)
    _back: dict[str, float] = field(default_factory=dict)

    def learn(self, users: Iterable[HubUser], now: float) -> None:
        """Record the Hub's users at an instant, in seconds since the epoch."""
        seen = {it.name: it.created for it in users}
        for name in self._left.keys() & seen.keys():
            if seen[name] is None or seen[name] != self._left[name]:
                self._back[name] = now  # otherwise it was renamed to this name again
        gone = {**self._left, **self._seen}
        self._left = {name: made for name, made in gone.items() if name not in seen}
        came = {made: name for name, made in seen.items() if name not in self._seen and made}
        self.renamed = {
            was: present
            for was, made in self._left.items()
            if (present := self._name(was, made, seen, came)) is not None
        }
        self._seen = seen

    def _name(
        self,
        was: str,
        made: float | None,
        seen: Mapping[str, float | None],
        came: Mapping[float, str],
    ) -> str | None:
        """Return the present name of a user whose name is gone, or None.

        Some databases store whole seconds, in which several users may be created. A new name
        therefore belongs to the same user only if it appears as the former one disappears.
        """
        last = self.renamed.get(was, was)
        if made is not None and seen.get(last) == made:
            return last
        return came.get(made) if made is not None and last in self._seen else None

    def describe(self, live: Sequence[JobRecord]) -> str | None:
        """Return sentences about removed users with unfinished jobs, or None.

        Args:
            live: Jobs that have not ended.

        >>> left = LeftUsers()
        >>> left.learn([HubUser("ada"), HubUser("zoe")], 1.0)
        >>> left.learn([HubUser("ada")], 2.0)
        >>> left.describe([])
        """
        sentences = [
            _of_left(name, self.renamed.get(name), sum(job.user == name for job in live))
            for name in sorted(self._left)
        ]
        sentences += [
            _of_back(name, sum(job.user == name and job.submitted < at for job in live))
            for name, at in sorted(self._back.items())
            if name not in self._left
        ]
        found = [sentence for sentence in sentences if sentence]
        more = len(found) - MOST_NAMED
        end = [f"The same applies to {count(more, 'more user')}."] if more > 0 else []
        return " ".join([*found[:MOST_NAMED], *end]) or None


def _of_left(name: str, now: str | None, jobs: int) -> str:
    if not jobs:
        return ""
    listed = f"`benchpool jobs --user {visible(name)} --live` lists"
    if now is not None:
        return (
            f"The Hub has renamed {visible(name)} to {visible(now)}, and {count(jobs, 'job')} sent "
            f"under the old name {'has' if jobs == 1 else 'have'} not ended: {listed} "
            "them, and administrators can cancel them."
        )
    return (
        f"The Hub no longer knows {visible(name)}, and {count(jobs, 'job')} of this user "
        f"{'has' if jobs == 1 else 'have'} not ended: {listed} what to cancel, unless "
        "the user is added again."
    )


def _of_back(name: str, jobs: int) -> str:
    if not jobs:
        return ""
    return (
        f"The name {visible(name)} was removed from the Hub and is used again. It has "
        f"{count(jobs, 'job')} from before. If this is another user, cancel what "
        f"`benchpool jobs --user {visible(name)} --live` lists."
    )
