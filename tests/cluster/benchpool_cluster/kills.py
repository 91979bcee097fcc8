"""Kills at random moments, and what the API server says of the jobs afterwards."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchpool_cluster.placements import Life, attempts, doubled

Object = dict[str, Any]
ENDED = ("succeeded", "failed", "cancelled")


def storm(
    kill: Callable[[str], bool],
    settle: Callable[[], None],
    kinds: Sequence[str],
    chance: random.Random,
    *,
    count: int,
    gap_s: tuple[float, float],
    at_once: int = 1,
) -> Counter[str]:
    """Kill something of one kind or another at random moments; return how often each.

    Every third time, by chance, the pool is served again at first: on a busy machine nothing would
    ever come to work otherwise.

    Args:
        kill: Kills one of a kind, and says whether there was one alive.
        settle: Returns when jobs are taken and started again.
        count: Of kills that met something.
        gap_s: Seconds between two moments, from and to.
        at_once: At each moment one, or by chance up to so many, are killed one after the other
            without a pause: what fails together, and what fails while others come back.
    """
    done: Counter[str] = Counter()
    while done.total() < count:
        if chance.random() < 0.33:
            settle()
        time.sleep(chance.uniform(*gap_s))  # any moment will do: that is what is tested
        for _ in range(min(chance.randint(1, at_once), count - done.total())):
            kind = chance.choice(kinds)
            done[kind] += kill(kind)
    return done


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of all jobs.

    Attributes:
        accepted: By key, the id of each job that somebody was told is accepted.
        jobs: By id, all jobs of the API server.
    """

    accepted: Mapping[str, str]
    jobs: Mapping[str, Object]
    lives: Sequence[Life]

    @classmethod
    def of(
        cls, accepted: Mapping[str, str], jobs: Iterable[Object], lives: Sequence[Life]
    ) -> Outcome:
        """Read it from TrainingJobs and the record of their pods."""
        return cls(accepted, {one["metadata"]["name"]: one for one in jobs}, lives)

    def _status(self, job: str) -> Object:
        status: Object = self.jobs.get(job, {}).get("status", {})
        return status

    def preemptions(self, job: str) -> int:
        """How often a job was paused for others."""
        return len(self._status(job).get("preemptions", []))

    @property
    def lost(self) -> dict[str, str]:
        """Accepted jobs that did not succeed, with their state; empty for one that is not there."""
        found = {key: self._status(job).get("state", "") for key, job in self.accepted.items()}
        return {key: state for key, state in found.items() if state != "succeeded"}

    @property
    def doubled(self) -> list[str]:
        """What ran twice."""
        specs = {job: one["spec"] for job, one in self.jobs.items()}
        least = {job: it.get("minWorkers") or it.get("workers", 1) for job, it in specs.items()}
        return doubled(self.lives, least)

    @property
    def made_twice(self) -> list[str]:
        """Jobs that nobody was told of: a key that was taken for another one's."""
        return sorted(set(self.jobs) - set(self.accepted.values()))

    @property
    def begun_again(self) -> dict[str, int]:
        """Jobs with more attempts than their pauses for others explain, and how many."""
        begun = attempts(self.lives)
        return {job: n for job, n in begun.items() if n > 1 + self.preemptions(job)}

    def __str__(self) -> str:
        """All of it as a sentence with numbers."""
        return (
            f"{len(self.accepted)} jobs accepted, {attempts(self.lives).total()} attempts, "
            f"{len(self.lives)} pods, {sum(map(self.preemptions, self.jobs))} preemptions; "
            f"{len(self.lost)} lost, {len(self.doubled) + len(self.made_twice)} doubled, "
            f"{len(self.begun_again)} begun again for no reason"
        )

    def hold(self) -> None:
        """Fail, and say with which jobs, unless every accepted job ran to its end once."""
        found = {
            "lost": self.lost,
            "doubled": self.doubled,
            "made twice": self.made_twice,
            "begun again": self.begun_again,
        }
        wrong = {what: which for what, which in found.items() if which}
        if wrong:
            named = [job for job in self.jobs if job in str(wrong)]
            about = {job: self._status(job) for job in named}
            pods = [life for life in self.lives if life.job in named]
            raise AssertionError(f"{self}: {wrong}\n{about}\n{pods}")
