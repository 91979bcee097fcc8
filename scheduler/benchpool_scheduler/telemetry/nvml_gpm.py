"""How much of a GPU its kernels used, where the driver's performance monitoring (GPM) is there.

Hopper and newer. It compares two samples of counters, so each look keeps one for the next.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pynvml

PERCENT = 100.0


class GpmReader:
    """The share of multiprocessors at work of one GPU."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask
        self._supported: bool | None = None
        self._last: Any = None

    def read(self) -> float | None:
        """Return the mean share since the last call; None where it is not measured."""
        if self._supported is None:
            told = self._ask(pynvml.nvmlGpmQueryDeviceSupport)
            self._supported = bool(told is not None and told.isSupportedDevice)
        if not self._supported:
            return None
        before, self._last = self._last, self._sample()
        try:
            if before is None or self._last is None:
                return None
            return self._compare(before, self._last)
        finally:
            _free(before)

    def close(self) -> None:
        """Give back what is kept."""
        _free(self._last)
        self._last = None

    def _sample(self) -> Any:
        try:
            sample = pynvml.nvmlGpmSampleAlloc()
        except pynvml.NVMLError:
            return None
        if self._ask(pynvml.nvmlGpmSampleGet, sample) is None:
            _free(sample)
            return None
        return sample

    def _compare(self, before: Any, now: Any) -> float | None:
        both = pynvml.c_nvmlGpmMetricsGet_t()
        both.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        both.numMetrics = 1
        both.sample1, both.sample2 = before, now
        both.metrics[0].metricId = pynvml.NVML_GPM_METRIC_SM_UTIL
        try:
            pynvml.nvmlGpmMetricsGet(both)
        except pynvml.NVMLError:
            return None
        metric = both.metrics[0]
        if metric.nvmlReturn != pynvml.NVML_SUCCESS or metric.value != metric.value:
            return None
        return min(max(float(metric.value) / PERCENT, 0.0), 1.0)


def _free(sample: Any) -> None:
    if sample is not None:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlGpmSampleFree(sample)
