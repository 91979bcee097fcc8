"""What the pool has learned of its jobs' run times, from attempts that have ended (R14, R22).

It is kept in memory only and made anew at each start from the jobs that the store still has, so
that nothing can be lost or counted twice; what the store forgets by age, this forgets too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from benchpool_scheduler.core.forecast.run_times import Expectation, RunTimes
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.store.records import AttemptRecord, JobRecord

MOST_READ = 5_000
"""At a start the run times of at most this many jobs are learned again, those that ended last."""


class RunTimeFacts(NamedTuple):
    """What the core is told: how long a job runs in all, and what earlier attempts have done."""

    expected_run_s: float | None
    done_s: float


class RuntimeEstimator:
    """Run times by kind of job, and what they say of jobs that have not ended."""

    def __init__(self) -> None:
        self.run_times = RunTimes()
        self._facts: dict[str, tuple[_Stage, RunTimeFacts]] = {}  # of those that have not ended

    def fill(
        self, jobs: Iterable[JobRecord], attempts: Mapping[str, Mapping[int, AttemptRecord]]
    ) -> None:
        """Learn from what a store had, the oldest end first."""
        ended, live = [], []
        for job in jobs:
            if job.ended is None:
                live.append(job)
            else:
                ended.append((job.ended, job))
        ended.sort(key=lambda entry: entry[0])
        for _, job in ended[-MOST_READ:]:
            self._learn(job, tuple(attempts.get(job.id, {}).values()))
        self.see((job, tuple(attempts.get(job.id, {}).values())) for job in live)

    def see(self, changed: Iterable[tuple[JobRecord, Sequence[AttemptRecord]]]) -> None:
        """Look at jobs that have changed: learn from what has ended, then tell what others expect.

        What is expected of a job changes with its attempts, and by ``renew``; not with each job
        that ends, for passes would then see a change of every other job.
        """
        live = []
        for job, attempts in changed:
            if job.live:
                live.append((job, attempts))
            elif self._facts.pop(job.id, None) is not None:  # learned from once
                self._learn(job, attempts)
        for job, attempts in live:
            known = self._facts.get(job.id)
            if known is None or known[0] != _stage(job, attempts):
                self._remember(job, attempts, None)

    def forget(self, job: str) -> None:
        """The job was removed."""
        self._facts.pop(job, None)

    def facts(self, job: JobRecord, attempts: Sequence[AttemptRecord]) -> RunTimeFacts:
        """Return what the core is told of a job, which was seen before or is worked out now."""
        known = self._facts.get(job.id)
        if known is None or known[0] != _stage(job, attempts):
            return self._worked_out(job, attempts, None)
        return known[1]

    def renew(self, job: JobRecord, attempts: Sequence[AttemptRecord], now: float) -> bool:
        """Expect more of a job that has run longer than was expected; tell whether that was so."""
        before = self.facts(job, attempts)
        if before.expected_run_s is None or ran_s(attempts, now) <= before.expected_run_s:
            return False
        return self._remember(job, attempts, now) != before

    def _remember(
        self, job: JobRecord, attempts: Sequence[AttemptRecord], now: float | None
    ) -> RunTimeFacts:
        facts = self._worked_out(job, attempts, now)
        self._facts[job.id] = _stage(job, attempts), facts
        return facts

    def _worked_out(
        self, job: JobRecord, attempts: Sequence[AttemptRecord], now: float | None
    ) -> RunTimeFacts:
        found = self.expectation(job, attempts, now)
        return RunTimeFacts(None if found is None else found.likely_s, ran_s(attempts, None))

    def expectation(
        self, job: JobRecord, attempts: Sequence[AttemptRecord], now: float | None
    ) -> Expectation | None:
        """Return how long a job will run in all its attempts; None while nothing is known.

        Args:
            now: Count what the present attempt ran so far; None leaves it out.
        """
        return self.run_times.expect(
            job.user, job.project, job.name, job.spec.total_gpus, ran_s(attempts, now)
        )

    def _learn(self, job: JobRecord, attempts: Sequence[AttemptRecord]) -> None:
        if any(attempt.started is not None for attempt in attempts):
            seconds = ran_s(attempts, None)
            self.run_times.learn(job.user, job.project, job.name, job.spec.total_gpus, seconds)


_Stage = tuple[int, float | None]
"""How far a job has come: the number of its attempt, and when the last one ended."""


def _stage(job: JobRecord, attempts: Sequence[AttemptRecord]) -> _Stage:
    return job.attempt, attempts[-1].ended if attempts else None


def ran_s(attempts: Sequence[AttemptRecord], now: float | None) -> float:
    """Return how long the attempts of a job ran; what was lost with a machine does not count.

    Args:
        now: Until when the one that has not ended counts; None leaves it out.
    """
    total = 0.0
    for attempt in attempts:
        end = now if attempt.ended is None else attempt.ended
        if attempt.started is None or end is None or attempt.ended_by == EndedBy.LOST:
            continue
        total += max(0.0, end - attempt.started)
    return total
