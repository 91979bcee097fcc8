"""Drivers with scripted answers, for tests of properties of every driver."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pynvml

from benchpool_scheduler.telemetry import GpuSample
from benchpool_scheduler.telemetry.nvml import NvmlSampler
from benchpool_support.nvml import ScriptedGpu, ScriptedLibrary

SECOND = 1_000_000
GPU = ScriptedGpu(
    "GPU-a",
    minor=0,
    used_mib=4096,
    utilisation=[(1 * SECOND, 50), (2 * SECOND, 100)],
    percent_now=30,
    power_mw=250_000,
    energy_mj=5_000_000,
    celsius=60,
    clock_reasons=pynvml.nvmlClocksEventReasonSwPowerCap,
    gpm=0.4,
    pids=[os.getpid()],
)
BOARD: Mapping[str, Any] = {"power_mw": 100_000, "energy_mj": 1_000, "percent_now": 90}
"""Values of the whole board, which some drivers also return for a slice."""
SLICED = ScriptedGpu(
    "GPU-s",
    minor=1,
    gpm=0.3,
    slices=[
        None,
        ScriptedGpu("MIG-1", memory_mib=20480, used_mib=100, instances=(1, 0), gpm=0.2, **BOARD),
        ScriptedGpu(
            "MIG-2",
            memory_mib=20480,
            used_mib=50,
            instances=(2, 0),
            gpm=0.1,
            gpm_active=0.5,
            **BOARD,
        ),
    ],
    **BOARD,
)


class Driver(Protocol):
    """Driver whose answers a test can change at any moment."""

    def set_gpus(self, gpus: Sequence[ScriptedGpu], **facts: Any) -> None: ...


class Scripted:
    """Driver whose answers come from ``ScriptedLibrary``."""

    def __init__(self, library: ScriptedLibrary) -> None:
        self._library = library

    def set_gpus(self, gpus: Sequence[ScriptedGpu], **facts: Any) -> None:
        self._library.gpus = list(gpus)
        self._library.missing = frozenset(facts.get("missing", ()))
        self._library.init_result = facts.get("init_result", 0)
        self._library.fails = dict(facts.get("fails", {}))
        self._library.slow_ms = dict(facts.get("slow_ms", {}))


def sampled(sampler: NvmlSampler, now: float, *gpus: str) -> Mapping[str, GpuSample]:
    return {it.gpu: it for it in sampler.sample(gpus, now, {})}


def second_look(driver: Driver, *gpus: ScriptedGpu, **facts: Any) -> Mapping[str, GpuSample]:
    """Sample GPUs twice and return the second sample; ``facts`` apply from the second sample on."""
    uuids = [part.uuid for gpu in gpus for part in (gpu.slices or [gpu]) if part is not None]
    driver.set_gpus(gpus)
    sampler = NvmlSampler()
    assert sampled(sampler, 0.0, *uuids) == {}
    if facts:
        driver.set_gpus(gpus, **facts)
    found = sampled(sampler, 10.0, *uuids)
    sampler.close()
    return found
