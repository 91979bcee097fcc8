"""Aggregation of samples over minutes and hours; pure and exact.

All sums are integers (milliseconds, joules). A sample across a border is divided so that its parts
add up to it. So the sums of any range are the same at every level, in any order of samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from benchpool_scheduler.telemetry.samples import GpuSample, HeldSample, Holder

MS = 1000
MIB = 1024
PERMILLE = 1000


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of samples.

    Attributes:
        covered_ms: Milliseconds in which activity was measured; ``active_ms``: in which a kernel
            ran. ``sm_covered_ms`` and ``sm_active_ms``: the same for the multiprocessors.
        energy_j: Joules, 0 when not measured. ``throttled_ms``: milliseconds with a reduced clock.
        memory_max_mib, temperature_max_c: Maximum, None when not measured.
        activity_min, activity_max: Least and most active sample, in thousandths.
        xids: Number of driver errors.
    """

    covered_ms: int = 0
    active_ms: int = 0
    sm_covered_ms: int = 0
    sm_active_ms: int = 0
    energy_j: int = 0
    throttled_ms: int = 0
    xids: int = 0
    memory_max_mib: int | None = None
    temperature_max_c: int | None = None
    activity_min: int | None = None
    activity_max: int | None = None

    def __add__(self, other: Sums) -> Sums:
        """Combine both."""
        added: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in ADDED}
        most: dict[str, Any] = {
            name: _most(getattr(self, name), getattr(other, name)) for name in MOST
        }
        lowest = [it for it in (self.activity_min, other.activity_min) if it is not None]
        return Sums(**added, **most, activity_min=min(lowest, default=None))


ADDED = (
    *("covered_ms", "active_ms", "sm_covered_ms", "sm_active_ms"),
    *("energy_j", "throttled_ms", "xids"),
)
MOST = ("memory_max_mib", "temperature_max_c", "activity_max")
"""Fields combined by maximum; ``activity_min`` by minimum, and the rest by addition."""


class Bucket(NamedTuple):
    """One GPU with one holder, from ``begin`` (seconds since the epoch)."""

    gpu: str
    simulated: bool
    holder: Holder
    begin: int


def parts(sample: GpuSample, step_s: int) -> Iterator[tuple[int, Sums]]:
    """Divide a sample at whole multiples of a step; yield the begin and sums of each step.

    Sums are divided by time and add up; a driver error counts in the last part.

    >>> sample = GpuSample(at=62.0, span_s=10.0, gpu="a", activity=0.5, energy_j=100.0)
    >>> [(begin, it.covered_ms, it.active_ms, it.energy_j) for begin, it in parts(sample, 60)]
    [(0, 8000, 4000, 80), (60, 2000, 1000, 20)]
    """
    end, step = round(sample.at * MS), step_s * MS
    begin = min(round((sample.at - sample.span_s) * MS), end)
    length, at = end - begin, begin
    while True:
        border = min((at // step + 1) * step, end)
        yield at // step * step_s, _cut(sample, at - begin, border - begin, length)
        if border >= end:
            return
        at = border


def _cut(sample: GpuSample, since: int, until: int, length: int) -> Sums:
    """Return the sums of a part of a sample, by milliseconds of its ``length``."""

    def share(total: int) -> int:
        return total * until // length - total * since // length if length else total

    def time(part: float | None) -> int:
        return 0 if part is None else share(round(min(max(part, 0.0), 1.0) * length))

    activity = None if sample.activity is None else _whole(sample.activity * PERMILLE)
    memory = sample.memory_used_gib
    return Sums(
        covered_ms=0 if activity is None else until - since,
        active_ms=time(sample.activity),
        sm_covered_ms=0 if sample.sm_activity is None else until - since,
        sm_active_ms=time(sample.sm_activity),
        energy_j=share(round(sample.energy_j or 0.0)),
        throttled_ms=until - since if sample.throttled else 0,
        xids=int(sample.xid is not None and until == length),
        memory_max_mib=_whole(None if memory is None else memory * MIB),
        temperature_max_c=_whole(sample.temperature_c),
        activity_min=activity,
        activity_max=activity,
    )


def rolled(samples: Iterable[HeldSample], step_s: int) -> Mapping[Bucket, Sums]:
    """Return the sums of samples in steps of ``step_s`` seconds, by GPU and holder."""
    found: dict[Bucket, Sums] = {}
    for held in samples:
        sample = held.sample
        for begin, sums in parts(sample, step_s):
            bucket = Bucket(sample.gpu, sample.simulated, held.holder, begin)
            found[bucket] = found[bucket] + sums if bucket in found else sums
    return found


def coarser(fine: Mapping[Bucket, Sums], step_s: int) -> Mapping[Bucket, Sums]:
    """Return sums in longer steps, a multiple of the present ones."""
    found: dict[Bucket, Sums] = {}
    for bucket, sums in fine.items():
        above = bucket._replace(begin=bucket.begin // step_s * step_s)
        found[above] = found[above] + sums if above in found else sums
    return found


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _most(one: int | None, other: int | None) -> int | None:
    return max((it for it in (one, other) if it is not None), default=None)
