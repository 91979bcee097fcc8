"""Use of a GPU's multiprocessors, by the driver's performance monitoring (GPM).

It needs Hopper or newer. It compares two samples of counters, so each call keeps one for the next.
It is the only source for the activity of a slice (MIG), by its GPU instance.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pynvml

from benchpool_scheduler.telemetry.nvml_slices import SlicePlace

PERCENT = 100.0
METRICS = (pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL, pynvml.NVML_GPM_METRIC_SM_UTIL)


@dataclass(frozen=True, slots=True)
class GpmShares:
    """Mean shares since the last call; None where not measured.

    Attributes:
        active: Share of the time in which a kernel ran. ``sm``: share of multiprocessors in use.
    """

    active: float | None = None
    sm: float | None = None


NOTHING = GpmShares()


class GpmReader:
    """Reader of performance monitoring for one GPU or slice.

    Args:
        ask: Call to its driver; returns None without an answer.
        place: Position of the slice; None for a whole GPU.
    """

    def __init__(self, ask: Callable[..., Any], place: SlicePlace | None = None) -> None:
        self._ask = ask
        self._place = place
        self._supported: bool | None = None
        self._last: Any = None

    def read(self) -> GpmShares:
        """Return the shares since the last call."""
        if self._supported is None:
            self._supported = self._is_supported()
        if not self._supported:
            return NOTHING
        before, self._last = self._last, self._sample()
        try:
            if before is None or self._last is None:
                return NOTHING
            return _compared(before, self._last)
        finally:
            _free(before)

    def close(self) -> None:
        """Free the stored sample."""
        _free(self._last)
        self._last = None

    def _is_supported(self) -> bool:
        place = self._place
        if place is None:
            support = self._ask(pynvml.nvmlGpmQueryDeviceSupport)
        elif not place.alone:
            return False  # the values are those of several slices together
        else:
            try:
                support = pynvml.nvmlGpmQueryDeviceSupport(place.parent)
            except pynvml.NVMLError:
                return False
        return bool(support is not None and support.isSupportedDevice)

    def _sample(self) -> Any:
        try:
            sample = pynvml.nvmlGpmSampleAlloc()
        except pynvml.NVMLError:
            return None
        if not self._filled(sample):
            _free(sample)
            return None
        return sample

    def _filled(self, sample: Any) -> bool:
        place = self._place
        if place is None:
            return self._ask(pynvml.nvmlGpmSampleGet, sample) is not None
        try:
            pynvml.nvmlGpmMigSampleGet(place.parent, place.instance, sample)
        except pynvml.NVMLError:
            return False
        return True


def _compared(before: Any, now: Any) -> GpmShares:
    both = pynvml.c_nvmlGpmMetricsGet_t()
    both.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    both.numMetrics = len(METRICS)
    both.sample1, both.sample2 = before, now
    for position, metric in enumerate(METRICS):
        both.metrics[position].metricId = metric
    try:
        pynvml.nvmlGpmMetricsGet(both)
    except pynvml.NVMLError:
        return NOTHING
    return GpmShares(*(_share(both.metrics[position]) for position in range(len(METRICS))))


def _share(metric: Any) -> float | None:
    if metric.nvmlReturn != pynvml.NVML_SUCCESS or metric.value != metric.value:
        return None
    return min(max(float(metric.value) / PERCENT, 0.0), 1.0)


def _free(sample: Any) -> None:
    if sample is not None:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlGpmSampleFree(sample)
