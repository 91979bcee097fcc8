"""The newest sample of each GPU, and since when it has been idle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from benchpool_scheduler.telemetry.samples import GpuSample, HeldSample, Holder

IDLE_SHARE = 0.01
"""Maximum share of a sample with running kernels for a GPU to count as idle."""

LASTING_TICKS = 3.5
"""Number of ticks without a sample after which a GPU's state is unknown."""


def shortened(sample: GpuSample, most_s: float) -> GpuSample:
    """Return a sample whose span is at most ``most_s``: the machine may have been suspended.

    >>> shortened(GpuSample(at=100.0, span_s=90.0, gpu="a", activity=0.5), 35.0).active_s
    17.5
    """
    return sample if sample.span_s <= most_s else replace(sample, span_s=most_s)


@dataclass(frozen=True, slots=True)
class LatestUse:
    """The newest sample of a GPU.

    Attributes:
        idle_since: Since when its holder has had no sample above ``IDLE_SHARE``, seconds since the
            epoch; None while it is active, or where activity is not measured. A gap in the
            samples restarts it.
    """

    sample: GpuSample
    holder: Holder
    idle_since: float | None


@dataclass(frozen=True, slots=True)
class JobGpuUse:
    """Current use of one job's GPUs; None for values that were not measured.

    Attributes:
        activity: Share of the time in which a kernel ran, 0 to 1, mean of its GPUs.
        memory_used_gib: Sum over its GPUs.
    """

    activity: float | None = None
    memory_used_gib: float | None = None

    @classmethod
    def of(cls, samples: Iterable[GpuSample]) -> JobGpuUse:
        """Combine the samples of its GPUs.

        >>> JobGpuUse.of([GpuSample(at=1, span_s=1, gpu="a", activity=0.5, memory_used_gib=3),
        ...               GpuSample(at=1, span_s=1, gpu="b", activity=0.1)])
        JobGpuUse(activity=0.3, memory_used_gib=3)
        """
        seen = list(samples)
        active = [it.activity for it in seen if it.activity is not None]
        used = [it.memory_used_gib for it in seen if it.memory_used_gib is not None]
        mean = round(sum(active) / len(active), 4) if active else None
        return cls(mean, sum(used) if used else None)


class LiveUse:
    """The newest sample of each GPU, readable without a driver call.

    Args:
        tick_s: Seconds between two samples.
    """

    def __init__(self, tick_s: float) -> None:
        self._lasting_s = LASTING_TICKS * tick_s
        self._latest: dict[str, LatestUse] = {}
        self._xids: dict[str, tuple[float, int]] = {}

    def see(self, samples: Iterable[HeldSample]) -> None:
        """Store newer samples."""
        for held in samples:
            self._latest[held.sample.gpu] = self._after(held)
            if held.sample.xid is not None:
                self._xids[held.sample.gpu] = (held.sample.at, held.sample.xid)

    def newest_xid(self, gpus: Collection[str], since: float) -> int | None:
        """Return the newest driver error of these GPUs since a time, or None."""
        seen = (self._xids[gpu] for gpu in gpus if gpu in self._xids)
        return max((it for it in seen if it[0] >= since), default=(0.0, None))[1]

    def _after(self, held: HeldSample) -> LatestUse:
        sample, before = held.sample, self._latest.get(held.sample.gpu)
        begin = sample.at - sample.span_s
        if sample.activity is None or sample.activity > IDLE_SHARE:
            return LatestUse(sample, held.holder, None)
        known = None if before is None or before.holder != held.holder else before
        gap = known is None or begin - known.sample.at > self._lasting_s
        if known is None or gap or known.idle_since is None:
            return LatestUse(sample, held.holder, begin)
        return LatestUse(sample, held.holder, known.idle_since)

    def of_job(self, job: str, at: float) -> JobGpuUse:
        """Return the use of a job's GPUs at a time."""
        return JobGpuUse.of(it.sample for it in self.now(at).values() if it.holder.job == job)

    def now(self, at: float) -> Mapping[str, LatestUse]:
        """Return the state of each GPU at a time; samples older than a few ticks are left out."""
        return {gpu: it for gpu, it in self._latest.items() if at - it.sample.at <= self._lasting_s}
