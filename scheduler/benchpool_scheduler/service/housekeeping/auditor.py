"""Check of the invariants after each pass; violations are bugs, and are reported.

I1 a GPU has at most one holder; I2 held GPUs do not exceed the existing ones; I3 a user's servers
hold no more than the build quota, unless the quota was lowered meanwhile; I4 a stop does not take
much longer than its grace period; I5 held GPUs belong to a live job; I6 an ended job has one final
state and holds no GPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from benchpool_scheduler.core.lifecycle import machine, states
from benchpool_scheduler.service.benches import bench_reserve
from benchpool_scheduler.service.execution.passes import PassNews
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.records import JobRecord

SLACK_S = 60.0
"""Time beyond the grace period after which a stop counts as stuck, in seconds."""


class Auditor:
    """Checker of the invariants; ``breaches`` counts violations by invariant since the start."""

    def __init__(self, ledger: Ledger, observed: SchedulerState) -> None:
        self._ledger = ledger
        self._observed = observed
        self._held_before: dict[str, int] = {}
        self.breaches: Counter[str] = Counter()

    def pass_made(self, news: PassNews) -> None:
        """Check the invariants after a pass."""
        self.audit()

    def audit(self) -> list[str]:
        """Return a sentence for each present violation; count and report them."""
        found = [*self._devices(), *self._quotas(), *self._stuck(), *self._lives()]
        for invariant, _ in found:
            self.breaches[invariant] += 1
        sentences = [f"{sentence} (invariant {invariant})." for invariant, sentence in found]
        self._observed.report("invariants", " ".join(sentences) or None)
        return sentences

    def _devices(self) -> Iterator[tuple[str, str]]:
        holders, leased = self._ledger.counters.holders, self._ledger.leased
        for gpu, jobs in self._ledger.counters.doubled.items():
            yield "I1", f"GPU {gpu} has {len(jobs)} holders"
        for gpu in leased:
            if gpu in holders:
                yield "I1", f"GPU {gpu} has a job and a bench as holders"
        held, known = len(holders) + len(leased), len(self._observed.now.inventory.devices)
        if known and held > known:
            yield "I2", f"{held} GPUs are held and {known} exist"

    def _quotas(self) -> Iterator[tuple[str, str]]:
        held: Counter[str] = Counter()
        for lease in self._ledger.leases():
            held[lease.user] += len(lease.gpus)
        before, self._held_before = self._held_before, dict(held)
        for user, count in held.items():
            known = self._observed.now.hub_user(user)
            quota, _ = bench_reserve.quota_of(
                self._observed.now, user, {} if known is None else known.groups
            )
            if count > quota and count > before.get(user, count):
                yield "I3", f"{user} holds {count} build GPUs with a quota of {quota}"

    def _stuck(self) -> Iterator[tuple[str, str]]:
        now = self._observed.settings.clock.now()
        for job in map(self._job, self._ledger.counters.stopping):
            if (
                job.stop_request is not None
                and now - job.stop_request.at > job.stop_request.grace_s + SLACK_S
            ):
                waited = now - job.stop_request.at
                yield "I4", f"Job {job.id[:8]} was to stop {waited:.0f} s ago and still runs"

    def _lives(self) -> Iterator[tuple[str, str]]:
        for job in map(self._job, self._ledger.counters.inconsistent):
            entry = self._ledger.counters.entry(job.id)
            holds = entry is not None and bool(entry.gpus)
            if holds != (job.state in states.HOLDS_GPUS):
                word = "holds GPUs" if holds else "holds none"
                yield "I5", f"Job {job.id[:8]} is {job.state} and {word}"
            if machine.is_over(job.state):
                yield "I6", f"Job {job.id[:8]} is {job.state} and has no end"

    def _job(self, job: str) -> JobRecord:
        return self._ledger.job_index.jobs[job]
