"""Run times of the pool's jobs, learned from ended attempts (R14, R22).

They are kept in memory and rebuilt at each start from the jobs in the store, so that no job is lost
or counted twice. Jobs that the store removes by age no longer count after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from benchpool_scheduler.core.forecast.run_times import Expectation, RunTimes
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.store.records import AttemptRecord, JobRecord

MOST_READ = 5_000
"""Maximum number of jobs whose run times are learned at a start, the last to end."""


class RunTimeFacts(NamedTuple):
    """Facts for the core: expected run time of a job, and run time of its earlier attempts."""

    expected_run_s: float | None
    done_s: float


class RuntimeEstimator:
    """Run times by kind of job, and the expectations for jobs that have not ended."""

    def __init__(self) -> None:
        self.run_times = RunTimes()
        self._facts: dict[str, tuple[_Stage, RunTimeFacts]] = {}  # of jobs that have not ended

    def fill(
        self, jobs: Iterable[JobRecord], attempts: Mapping[str, Mapping[int, AttemptRecord]]
    ) -> None:
        """Learn from the jobs of a store, the oldest end first."""
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
        """Learn from changed jobs that have ended, and update expectations of changed live jobs.

        A job's expectation changes with its attempts and by ``renew``. It does not change with each
        job that ends, since passes would then see a change of every other job.
        """
        live = []
        for job, attempts in changed:
            if job.live:
                live.append((job, attempts))
            elif self._facts.pop(job.id, None) is not None:  # learned from only once
                self._learn(job, attempts)
        for job, attempts in live:
            known = self._facts.get(job.id)
            if known is None or known[0] != _stage(job, attempts):
                self._remember(job, attempts, None)

    def forget(self, job: str) -> None:
        """Forget a removed job."""
        self._facts.pop(job, None)

    def facts(self, job: JobRecord, attempts: Sequence[AttemptRecord]) -> RunTimeFacts:
        """Return the facts of a job for the core, stored or computed now."""
        known = self._facts.get(job.id)
        if known is None or known[0] != _stage(job, attempts):
            return self._worked_out(job, attempts, None)
        return known[1]

    def renew(self, job: JobRecord, attempts: Sequence[AttemptRecord], now: float) -> bool:
        """Return True after raising the expectation of a job that ran longer than expected."""
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
        """Return the expected run time of a job in all its attempts, or None if unknown.

        Args:
            now: End of the present attempt's run so far, which counts. None leaves it out.
        """
        return self.run_times.expect(
            job.user, job.project, job.name, job.spec.total_gpus, ran_s(attempts, now)
        )

    def _learn(self, job: JobRecord, attempts: Sequence[AttemptRecord]) -> None:
        if any(attempt.started is not None for attempt in attempts):
            seconds = ran_s(attempts, None)
            self.run_times.learn(job.user, job.project, job.name, job.spec.total_gpus, seconds)


_Stage = tuple[int, float | None]
"""Stage of a job: the number of its attempt, and the end of the last one."""


def _stage(job: JobRecord, attempts: Sequence[AttemptRecord]) -> _Stage:
    return job.attempt, attempts[-1].ended if attempts else None


def ran_s(attempts: Sequence[AttemptRecord], now: float | None) -> float:
    """Return how long the attempts of a job ran. Attempts lost with a node do not count.

    Args:
        now: Time until which the unfinished attempt counts. None leaves it out.
    """
    total = 0.0
    for attempt in attempts:
        end = now if attempt.ended is None else attempt.ended
        if attempt.started is None or end is None or attempt.ended_by == EndedBy.LOST:
            continue
        total += max(0.0, end - attempt.started)
    return total
