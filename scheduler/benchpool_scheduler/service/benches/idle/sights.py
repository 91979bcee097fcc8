"""Observations of one bench since the last look: its GPUs and its server's reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchpool_scheduler.contract.idle_benches import BenchActivity
from benchpool_scheduler.core.benches.idle import Sighting
from benchpool_scheduler.telemetry import GpuSample

FRESH_S = 60.0
"""Validity of a notebook server's report, in seconds. Servers report three times as often."""
WAIT_S = 25.0
"""Longest wait of a look for samples of all GPUs, in seconds. They come every few seconds."""
MOST_PENDING_S = 40.0


@dataclass(slots=True)
class BenchSights:
    """Collects the observations of one bench until a look takes them.

    Attributes:
        last_report: The newest report, received at ``last_report_at``.
        executions: The last reported number.
    """

    gpus: Sequence[str]
    last_report: BenchActivity | None = None
    last_report_at: float = 0.0
    executions: int | None = None
    _pending_s: dict[str, float] = field(default_factory=dict)
    _most: float = 0.0
    _worked: bool = False
    _executed: bool = False

    def measured(self, sample: GpuSample) -> None:
        """Add a sample of one of its GPUs. A sample without activity is ignored."""
        if sample.activity is None:
            return
        pending = self._pending_s.get(sample.gpu, 0.0) + sample.span_s
        self._pending_s[sample.gpu] = min(pending, MOST_PENDING_S)
        self._most = max(self._most, sample.activity)

    def reported(self, activity: BenchActivity, now: float) -> None:
        """Add a report of its notebook server."""
        before = self.executions
        # A lower number is from another start of the server: cells may have run.
        self._executed |= before is not None and activity.executions != before
        self._worked |= _works(activity) is True
        self.last_report, self.last_report_at, self.executions = activity, now, activity.executions

    def is_fresh(self, now: float) -> bool:
        """Return whether its server has reported recently."""
        return self.last_report is not None and 0 <= now - self.last_report_at <= FRESH_S

    def taken(self, now: float, before: float | None, *, spared: bool) -> Sighting | None:
        """Return the observations since the last look, or None to wait for samples.

        Args:
            before: Time of the last look, or None if there was none.
        """
        whole = all(self._pending_s.get(gpu) for gpu in self.gpus)
        passed_s = 0.0 if before is None else now - before
        sure = self._worked or self._executed or spared
        if not whole and not sure and before is not None and 0 <= passed_s < WAIT_S:
            return None
        measured_s = min(self._pending_s.values(), default=0.0) if whole else 0.0
        measured_s = min(measured_s, max(passed_s, 0.0))
        working = True if self._worked else None
        if working is None and self.last_report is not None and self.is_fresh(now):
            working = _works(self.last_report)
        seen = Sighting(
            at=now,
            measured_s=measured_s,
            activity=self._most if whole or self._most > 0 else None,
            working=working,
            executed=self._executed,
            spared=spared,
        )
        # Samples and looks do not end together. The excess of a sample counts for the next look.
        self._pending_s = {
            gpu: left for gpu, it in self._pending_s.items() if (left := it - measured_s) > 0
        }
        self._most, self._worked, self._executed = 0.0, False, False
        return seen


def _works(activity: BenchActivity) -> bool | None:
    if activity.busy_kernels or activity.terminal_programs:
        return True
    return None if activity.terminal_programs is None else False
