"""Kills at random moments, and the fate of the jobs according to the API server."""

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
    """Kill processes of random kinds at random moments; return the number of kills per kind.

    With a probability of 0.33 the function first waits until the pool serves again. Otherwise
    nothing would start to work on a busy machine.

    Args:
        kill: Kill one process of a kind; return whether one was alive.
        settle: Return when jobs are accepted and started again.
        count: Number of kills that hit a living process.
        gap_s: Shortest and longest time between two moments, in seconds.
        at_once: Maximum number of kills per moment, one after the other without a pause. They test
            joint failures, and failures during the restart of another process.
    """
    done: Counter[str] = Counter()
    while done.total() < count:
        if chance.random() < 0.33:
            settle()
        time.sleep(chance.uniform(*gap_s))  # any moment will do: this is under test
        for _ in range(min(chance.randint(1, at_once), count - done.total())):
            kind = chance.choice(kinds)
            done[kind] += kill(kind)
    return done


@dataclass(frozen=True, slots=True)
class Outcome:
    """The fate of all jobs.

    Attributes:
        accepted: IDs of the jobs whose acceptance a client received, by key.
        jobs: All jobs of the API server, by ID.
    """

    accepted: Mapping[str, str]
    jobs: Mapping[str, Object]
    lives: Sequence[Life]

    @classmethod
    def of(
        cls, accepted: Mapping[str, str], jobs: Iterable[Object], lives: Sequence[Life]
    ) -> Outcome:
        """Return the outcome from TrainingJobs and the record of their pods."""
        return cls(accepted, {one["metadata"]["name"]: one for one in jobs}, lives)

    def _status(self, job: str) -> Object:
        status: Object = self.jobs.get(job, {}).get("status", {})
        return status

    def preemptions(self, job: str) -> int:
        """Return how often a job was preempted."""
        return len(self._status(job).get("preemptions", []))

    @property
    def lost(self) -> dict[str, str]:
        """Return accepted jobs without success, with their state; it is empty for a missing job."""
        found = {key: self._status(job).get("state", "") for key, job in self.accepted.items()}
        return {key: state for key, state in found.items() if state != "succeeded"}

    @property
    def doubled(self) -> list[str]:
        """Return descriptions of everything that ran twice."""
        specs = {job: one["spec"] for job, one in self.jobs.items()}
        least = {job: it.get("minWorkers") or it.get("workers", 1) for job, it in specs.items()}
        return doubled(self.lives, least)

    @property
    def made_twice(self) -> list[str]:
        """Return jobs that no client knows: a key was taken for another key."""
        return sorted(set(self.jobs) - set(self.accepted.values()))

    @property
    def begun_again(self) -> dict[str, int]:
        """Return the jobs with more attempts than their preemptions explain, and the number."""
        begun = attempts(self.lives)
        return {job: n for job, n in begun.items() if n > 1 + self.preemptions(job)}

    def __str__(self) -> str:
        """Return all of it as a sentence with numbers."""
        return (
            f"{len(self.accepted)} jobs accepted, {attempts(self.lives).total()} attempts, "
            f"{len(self.lives)} pods, {sum(map(self.preemptions, self.jobs))} preemptions; "
            f"{len(self.lost)} lost, {len(self.doubled) + len(self.made_twice)} doubled, "
            f"{len(self.begun_again)} begun again for no reason"
        )

    def hold(self) -> None:
        """Fail with the names of the jobs unless every accepted job ran to its end once."""
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
