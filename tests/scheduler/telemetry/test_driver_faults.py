"""A driver fault hides only the affected values, equally with every driver."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pynvml
import pytest

from benchpool_scheduler.runtime import DeviceState
from benchpool_scheduler.runtime.local.gpus import NvmlSource
from benchpool_scheduler.telemetry import GpuSample
from benchpool_scheduler.telemetry.nvml import NvmlSampler
from benchpool_support.nvml import (
    LOST,
    MISMATCH,
    NOT_SUPPORTED,
    UNKNOWN,
)
from benchpool_support.nvml_drivers import GPU, SLICED, Driver, sampled, second_look
from benchpool_support.waiting import until


def no_samples(found: Mapping[str, GpuSample]) -> bool:
    return found == {}


def without(*names: str) -> Callable[[Mapping[str, GpuSample]], bool]:
    return lambda found: all(getattr(found["GPU-a"], name) is None for name in names)


def whole(found: Mapping[str, GpuSample]) -> bool:
    return found["GPU-a"].activity is not None and found["GPU-a"].power_w == 250.0


FAULTS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], Any]] = {
    "a function is missing": (
        {"utilisation": None},
        {"missing": ["nvmlDeviceGetUtilizationRates"]},
        without("activity"),
    ),
    "an old driver knows one memory alone": (
        {},
        {"missing": ["nvmlDeviceGetMemoryInfo_v2"]},
        lambda found: found["GPU-a"].memory_used_gib == pytest.approx(4 + 600 / 1024),
    ),
    "an old driver has another word for clocks": (
        {},
        {"missing": ["nvmlDeviceGetCurrentClocksEventReasons"]},
        lambda found: found["GPU-a"].throttled == ("power-cap",),
    ),
    "power is not supported": (
        {"fails": {"nvmlDeviceGetPowerUsage": NOT_SUPPORTED}},
        {},
        without("power_w"),
    ),
    "no energy is counted": (
        {"energy_mj": None},
        {},
        lambda found: found["GPU-a"].energy_j == 2500.0,  # from power
    ),
    "nothing is supported": (
        {
            **dict.fromkeys(("utilisation", "percent_now", "power_mw", "energy_mj"), None),
            **dict.fromkeys(("celsius", "clock_reasons", "gpm"), None),
        },
        {},
        without("activity", "sm_activity", "power_w", "energy_j", "temperature_c"),
    ),
    "a call fails for a moment": (
        {},
        {"fails": {"nvmlDeviceGetTemperature": UNKNOWN}},
        without("temperature_c"),
    ),
    "the gpu is lost": (
        {"fails": {"nvmlDeviceGetTotalEnergyConsumption": LOST}},
        {},
        no_samples,
    ),
    "the driver was exchanged": (
        {},
        {"fails": {"nvmlDeviceGetTotalEnergyConsumption": MISMATCH}},
        no_samples,
    ),
    "the driver was shut down by somebody": (
        {},
        {"fails": {"nvmlDeviceGetTotalEnergyConsumption": pynvml.NVML_ERROR_UNINITIALIZED}},
        no_samples,
    ),
    "no permission for counters": (
        {},
        {"fails": {"nvmlGpmSampleGet": pynvml.NVML_ERROR_NO_PERMISSION}},
        without("sm_activity"),
    ),
    "clocks have reasons that nobody knows": (
        {"clock_reasons": 1 << 40},
        {},
        lambda found: found["GPU-a"].throttled == (),
    ),
    "a call is slow": ({}, {"slow_ms": {"nvmlDeviceGetPowerUsage": 100.0}}, whole),
    "there are more per cent than a hundred": (
        {"utilisation": None, "percent_now": 250},
        {},
        lambda found: found["GPU-a"].activity == 1.0,
    ),
    "there are sixteen gpus": ({}, {}, whole),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_driver_fault_hides_only_affected_values(driver: Driver, fault: str) -> None:
    change, facts, expected = FAULTS[fault]
    more = [replace(GPU, uuid=f"GPU-{n}") for n in range(15)] if "sixteen" in fault else []
    assert expected(second_look(driver, replace(GPU, **change), *more, **facts))


def test_missing_library_is_reported_and_retried(driver: Driver) -> None:
    driver.set_gpus([GPU], init_result=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    sampler = NvmlSampler()
    assert sampled(sampler, 0.0, "GPU-a") == {}
    assert "NVML does not answer" in (sampler.problem or "")
    driver.set_gpus([GPU])
    assert sampled(sampler, 31.0, "GPU-a") == {}
    assert sampled(sampler, 41.0, "GPU-a").keys() == {"GPU-a"}
    sampler.close()


def test_gpu_order_change_keeps_samples_apart(driver: Driver) -> None:
    other = replace(GPU, uuid="GPU-b", power_mw=99_000)
    driver.set_gpus([GPU, other])
    sampler = NvmlSampler()
    sampled(sampler, 0.0, "GPU-a", "GPU-b")
    driver.set_gpus([other, GPU])
    found = sampled(sampler, 10.0, "GPU-a", "GPU-b")
    assert (found["GPU-a"].power_w, found["GPU-b"].power_w) == (250.0, 99.0)
    sampler.close()


def test_returning_gpu_starts_new_span(driver: Driver) -> None:
    driver.set_gpus([GPU])
    sampler = NvmlSampler()
    sampled(sampler, 0.0, "GPU-a")
    driver.set_gpus([])
    assert sampled(sampler, 10.0, "GPU-a") == {}
    driver.set_gpus([GPU])
    assert sampled(sampler, 20.0, "GPU-a") == {}
    assert sampled(sampler, 30.0, "GPU-a")["GPU-a"].span_s == 10.0
    sampler.close()


def test_counter_reset_and_clock_change_invent_nothing(
    driver: Driver,
) -> None:
    driver.set_gpus([GPU])
    sampler = NvmlSampler()
    sampled(sampler, 0.0, "GPU-a")
    driver.set_gpus([replace(GPU, energy_mj=7)])
    assert sampled(sampler, 10.0, "GPU-a")["GPU-a"].energy_j == 2500.0  # from power
    assert sampled(sampler, 5.0, "GPU-a") == {}
    assert sampled(sampler, 15.0, "GPU-a")["GPU-a"].span_s == 10.0
    sampler.close()


def test_xid_error_is_reported_once_and_other_events_ignored(driver: Driver) -> None:
    odd = replace(GPU, uuid="GPU-b", xids=[1], event_type=1 << 20)
    driver.set_gpus([replace(GPU, xids=[79]), odd])
    sampler = NvmlSampler()
    looks = itertools.count(1)

    def look() -> list[tuple[str, int | None]]:
        found = sampled(sampler, float(next(looks)), "GPU-a", "GPU-b")
        return [(it.gpu, it.xid) for it in found.values() if it.xid is not None]

    seen = until(look)  # a thread collects them
    found = sampled(sampler, float(next(looks)), "GPU-a", "GPU-b")
    sampler.close()
    assert seen == [("GPU-a", 79)]
    assert [it.xid for it in found.values()] == [None, None]


def test_gpus_slices_and_processes_without_memory_are_found(driver: Driver) -> None:
    driver.set_gpus([GPU, SLICED])
    source = NvmlSource(ours=lambda _pid, _uuid: True)
    assert [it.uuid for it in source.devices()] == ["GPU-a", "MIG-1", "MIG-2"]
    assert source.processes("GPU-a") == (os.getpid(),)
    driver.set_gpus([replace(GPU, grows=2), replace(SLICED, slices=None)])  # no longer divided
    assert [it.uuid for it in source.devices()][:2] == ["GPU-a", "GPU-s"]
    assert len(source.processes("GPU-a") or ()) == 3
    driver.set_gpus([replace(GPU, grows=50)])  # more than the buffer holds: unknown, without error
    assert source.processes("GPU-a") is None


def test_missing_and_lost_gpus_are_reported(driver: Driver) -> None:
    source = NvmlSource(ours=lambda _pid, _uuid: True)
    assert source.devices() == ()
    driver.set_gpus([GPU])
    assert [it.state for it in source.devices()] == [DeviceState.USABLE]
    driver.set_gpus([replace(GPU, fails={"nvmlDeviceGetUUID": LOST})])
    assert [(it.uuid, it.state) for it in source.devices()] == [("GPU-a", DeviceState.BROKEN)]
    driver.set_gpus([replace(GPU, mig_mode=7)])  # an unknown mode is no division
    assert [it.uuid for it in source.devices()] == ["GPU-a"]
