"""What was measured last of each GPU, and since when it has been idle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from benchpool_scheduler.telemetry.samples import GpuSample, HeldSample, Holder

IDLE_SHARE = 0.01
"""A GPU that ran kernels for no more than this share of a sample was idle in it."""

LASTING_TICKS = 3.5
"""After so many ticks without a sample nothing is known of a GPU now."""


def shortened(sample: GpuSample, most_s: float) -> GpuSample:
    """Return a sample that says nothing of a time longer than this: the machine may have slept.

    >>> shortened(GpuSample(at=100.0, span_s=90.0, gpu="a", activity=0.5), 35.0).active_s
    17.5
    """
    return sample if sample.span_s <= most_s else replace(sample, span_s=most_s)


@dataclass(frozen=True, slots=True)
class LatestUse:
    """The newest sample of a GPU.

    Attributes:
        idle_since: Since when its holder has had it without a sample above ``IDLE_SHARE``, seconds
            since the epoch; None while it is active, or where activity is not measured. A gap in
            the samples begins it anew.
    """

    sample: GpuSample
    holder: Holder
    idle_since: float | None


@dataclass(frozen=True, slots=True)
class JobGpuUse:
    """What the GPUs of one job do now; None for what was not measured.

    Attributes:
        activity: Share of the time in which a kernel ran, 0 to 1, mean of its GPUs.
        memory_used_gib: Of all its GPUs.
    """

    activity: float | None = None
    memory_used_gib: float | None = None

    @classmethod
    def of(cls, samples: Iterable[GpuSample]) -> JobGpuUse:
        """Return what samples of its GPUs say together.

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
    """The newest sample of each GPU. Reading it costs no call of the driver.

    Args:
        tick_s: Seconds between two samples.
    """

    def __init__(self, tick_s: float) -> None:
        self._lasting_s = LASTING_TICKS * tick_s
        self._latest: dict[str, LatestUse] = {}
        self._xids: dict[str, tuple[float, int]] = {}

    def see(self, samples: Iterable[HeldSample]) -> None:
        """Learn of newer samples."""
        for held in samples:
            self._latest[held.sample.gpu] = self._after(held)
            if held.sample.xid is not None:
                self._xids[held.sample.gpu] = (held.sample.at, held.sample.xid)

    def newest_xid(self, gpus: Collection[str], since: float) -> int | None:
        """Return the driver's newest error of these GPUs since a time; None where none was seen."""
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
        """Return what the GPUs of a job do at a time."""
        return JobGpuUse.of(it.sample for it in self.now(at).values() if it.holder.job == job)

    def now(self, at: float) -> Mapping[str, LatestUse]:
        """Return what is known of GPUs at a time; what is older than a few ticks is left out."""
        return {gpu: it for gpu, it in self._latest.items() if at - it.sample.at <= self._lasting_s}
