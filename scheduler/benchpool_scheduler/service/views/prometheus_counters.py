"""Counts since the start of the process, for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.store.records import JobRecord


class PrometheusCounters:
    """Ended jobs, preemptions and their cost, by project."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._counted: dict[str, tuple[int, float]] = {}
        self.ended: Counter[tuple[str, str]] = Counter()
        self.preemptions: Counter[str] = Counter()
        self.lost_gpu_s: dict[str, float] = {}

    def jobs_changed(self, jobs: Collection[str]) -> None:
        """Count the changes of these jobs."""
        for job in filter(None, map(self._ledger.job, jobs)):
            self._see(job)

    def _see(self, job: JobRecord) -> None:
        times, known_gpu_s = self._counted.get(job.id, (0, 0.0))
        now, measured_gpu_s = self._known(job)
        self.preemptions[job.project] += now - times
        lost = max(0.0, measured_gpu_s - known_gpu_s)
        self.lost_gpu_s[job.project] = self.lost_gpu_s.get(job.project, 0.0) + lost
        if job.live:
            self._counted[job.id] = (now, measured_gpu_s)
        else:
            self._counted.pop(job.id, None)
            self.ended[job.project, job.state.value] += 1

    def _known(self, job: JobRecord) -> tuple[int, float]:
        """Return how often a job was preempted, and the measured cost in GPU seconds."""
        records = self._ledger.preemptions(job.id)
        return len(records), sum(it.cost_gpu_s for it in records if it.unsaved_gpu_s is not None)

    def start(self) -> None:
        """Treat all present values as counted already."""
        for job in self._ledger.live():
            self._counted[job.id] = self._known(job)
