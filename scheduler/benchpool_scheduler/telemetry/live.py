"""What was measured last of each GPU, and since when it has been idle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


class LiveUse:
    """The newest sample of each GPU. Reading it costs no call of the driver.

    Args:
        tick_s: Seconds between two samples.
    """

    def __init__(self, tick_s: float) -> None:
        self._lasting_s = LASTING_TICKS * tick_s
        self._latest: dict[str, LatestUse] = {}

    def see(self, samples: Iterable[HeldSample]) -> None:
        """Learn of newer samples."""
        for held in samples:
            self._latest[held.sample.gpu] = self._after(held)

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

    def now(self, at: float) -> Mapping[str, LatestUse]:
        """Return what is known of GPUs at a time; what is older than a few ticks is left out."""
        return {gpu: it for gpu, it in self._latest.items() if at - it.sample.at <= self._lasting_s}
