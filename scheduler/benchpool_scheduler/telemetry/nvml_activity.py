"""The share of time in which a GPU ran a kernel, without gaps where the driver stores samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pynvml

PERCENT = 100.0

Ask = Callable[..., Any]
"""Call to the driver for one GPU; returns None without an answer."""


def mean_since(seen: int, samples: Sequence[tuple[int, float]]) -> tuple[int, float | None]:
    """Return the time of the newest sample, and the mean percentage as a share.

    Each sample stands for the time since the one before it, the first for the time since ``seen``.

    Args:
        seen: Time of the newest earlier sample, in microseconds; 0 for none.
        samples: Time in microseconds, and percentage.

    >>> mean_since(1_000_000, [(2_000_000, 100), (6_000_000, 0)])
    (6000000, 0.2)
    >>> mean_since(0, [(2_000_000, 100), (6_000_000, 0)])
    (6000000, 0.0)
    >>> mean_since(6_000_000, [(5_000_000, 100)])
    (6000000, None)
    """
    fresh = sorted(it for it in samples if it[0] > seen)
    if not fresh:
        return seen, None
    at, weighted = seen or fresh[0][0], 0.0
    begin = at
    for moment, percent in fresh:
        weighted += percent * (moment - at)
        at = moment
    if at == begin:  # a single sample without an earlier one
        return at, fresh[-1][1] / PERCENT
    return at, min(max(weighted / (at - begin) / PERCENT, 0.0), 1.0)


class Utilisation:
    """Activity of one GPU, from the driver's samples since the last call, or its current rate."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._seen = 0

    def read(self) -> float | None:
        """Return the share of time since the last call in which a kernel ran; None if unknown."""
        answer = self._ask(
            pynvml.nvmlDeviceGetSamples, pynvml.NVML_GPU_UTILIZATION_SAMPLES, self._seen
        )
        if answer is not None:
            _, samples = answer
            pairs = [(int(it.timeStamp), float(it.sampleValue.uiVal)) for it in samples]
            self._seen, activity = mean_since(self._seen, pairs)
            if activity is not None:
                return activity
        rates = self._ask(pynvml.nvmlDeviceGetUtilizationRates)
        return None if rates is None else min(float(rates.gpu) / PERCENT, 1.0)
