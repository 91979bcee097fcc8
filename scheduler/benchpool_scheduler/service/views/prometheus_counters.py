"""Counts since the start of the process, for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.store.records import JobRecord


class PrometheusCounters:
    """What has ended and what preemptions cost, by project."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._counted: dict[str, int] = {}
        self.ended: Counter[tuple[str, str]] = Counter()
        self.preemptions: Counter[str] = Counter()
        self.lost_gpu_s: dict[str, float] = {}

    def jobs_changed(self, jobs: Collection[str]) -> None:
        """Count what is new about jobs."""
        for job in filter(None, map(self._ledger.job, jobs)):
            self._see(job)

    def _see(self, job: JobRecord) -> None:
        records = self._ledger.preemptions(job.id)
        for it in records[self._counted.get(job.id, 0) :]:
            self.preemptions[job.project] += 1
            self.lost_gpu_s[job.project] = self.lost_gpu_s.get(job.project, 0.0) + it.lost_gpu_s
        if job.live:
            self._counted[job.id] = len(records)
        else:
            self._counted.pop(job.id, None)
            self.ended[job.project, job.state.value] += 1

    def start(self) -> None:
        """Take what is there as counted already."""
        for job in self._ledger.live():
            self._counted[job.id] = len(self._ledger.preemptions(job.id))
