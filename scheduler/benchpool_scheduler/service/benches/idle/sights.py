"""Observations of one bench since the last look: its GPUs and its server's reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from benchpool_scheduler.contract.idle_benches import BenchActivity
from benchpool_scheduler.core.benches.idle import Sighting
from benchpool_scheduler.telemetry import GpuSample

FRESH_S = 60.0
"""Validity of a notebook server's report, in seconds. Servers report three times as often."""
INTERVAL_S = 10.0
"""Shortest assumed sampling interval, in seconds: that of looks."""
WAIT_S = 15.0
"""Longest wait of a look for samples of all GPUs beyond their sampling interval, in seconds."""
PENDING_S = 30.0
"""Limit of the sampled time that no look has taken, beyond the sampling interval, in seconds."""


@dataclass(frozen=True, slots=True)
class SampledGpu:
    """Samples of one GPU.

    Attributes:
        pending_s: Sampled time that no look has taken, in seconds.
        spans: Spans of the last two samples, in seconds.
        fresh: There is a sample since the last look.
    """

    pending_s: float = 0.0
    spans: tuple[float, ...] = ()
    fresh: bool = False

    @property
    def interval_s(self) -> float:
        """Return the sampling interval, in seconds. One longer span is a gap, not an interval.

        >>> [SampledGpu(spans=it).interval_s for it in ((), (60.0, 60.0), (60.0, 200.0))]
        [10.0, 60.0, 60.0]
        """
        return max(INTERVAL_S, min(self.spans, default=0.0))

    def sampled(self, span_s: float) -> SampledGpu:
        """Return the state after another sample of ``span_s`` seconds."""
        after = replace(self, spans=(*self.spans[-1:], span_s), fresh=True)
        most_s = after.interval_s + PENDING_S
        return replace(after, pending_s=min(self.pending_s + span_s, most_s))

    def taken(self, measured_s: float) -> SampledGpu:
        """Return the state after a look that took ``measured_s`` seconds."""
        return replace(self, pending_s=max(0.0, self.pending_s - measured_s), fresh=False)


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
    _sampled: dict[str, SampledGpu] = field(default_factory=dict)
    _most: float = 0.0
    _worked: bool = False
    _executed: bool = False

    def measured(self, sample: GpuSample) -> None:
        """Add a sample of one of its GPUs. A sample without activity is ignored."""
        if sample.activity is None:
            return
        before = self._sampled.get(sample.gpu, SampledGpu())
        self._sampled[sample.gpu] = before.sampled(sample.span_s)
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
        gpus = [self._sampled.get(gpu, SampledGpu()) for gpu in self.gpus]
        whole = all(it.fresh for it in gpus)
        passed_s = 0.0 if before is None else now - before
        sure = self._worked or self._executed or spared
        wait_s = WAIT_S + max((it.interval_s for it in gpus), default=0.0)
        if not whole and not sure and before is not None and 0 <= passed_s < wait_s:
            return None
        pending_s = min((it.pending_s for it in gpus), default=0.0)
        measured_s = min(pending_s, max(passed_s, 0.0)) if whole else 0.0
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
        self._sampled = {gpu: it.taken(measured_s) for gpu, it in self._sampled.items()}
        self._most, self._worked, self._executed = 0.0, False, False
        return seen


def _works(activity: BenchActivity) -> bool | None:
    if activity.busy_kernels or activity.terminal_programs:
        return True
    return None if activity.terminal_programs is None else False
