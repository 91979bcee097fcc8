"""A driver's fault takes away what it hides, and nothing more; every driver shows the same."""

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
from benchpool_support.nvml_drivers import GPU, SLICED, Driver, second_look, told
from benchpool_support.waiting import until


def nothing_told(found: Mapping[str, GpuSample]) -> bool:
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
        nothing_told,
    ),
    "the driver was exchanged": (
        {},
        {"fails": {"nvmlDeviceGetTotalEnergyConsumption": MISMATCH}},
        nothing_told,
    ),
    "the driver was shut down by somebody": (
        {},
        {"fails": {"nvmlDeviceGetTotalEnergyConsumption": pynvml.NVML_ERROR_UNINITIALIZED}},
        nothing_told,
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
def test_a_fault_takes_away_what_it_hides_and_nothing_more(driver: Driver, fault: str) -> None:
    change, facts, expected = FAULTS[fault]
    more = [replace(GPU, uuid=f"GPU-{n}") for n in range(15)] if "sixteen" in fault else []
    assert expected(second_look(driver, replace(GPU, **change), *more, **facts))


def test_no_library_is_said_and_tried_again(driver: Driver) -> None:
    driver.tell([GPU], init_result=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    sampler = NvmlSampler()
    assert told(sampler, 0.0, "GPU-a") == {}
    assert "NVML does not answer" in (sampler.problem or "")
    driver.tell([GPU])
    assert told(sampler, 31.0, "GPU-a") == {}
    assert told(sampler, 41.0, "GPU-a").keys() == {"GPU-a"}
    sampler.close()


def test_another_order_of_gpus_confuses_none(driver: Driver) -> None:
    other = replace(GPU, uuid="GPU-b", power_mw=99_000)
    driver.tell([GPU, other])
    sampler = NvmlSampler()
    told(sampler, 0.0, "GPU-a", "GPU-b")
    driver.tell([other, GPU])
    found = told(sampler, 10.0, "GPU-a", "GPU-b")
    assert (found["GPU-a"].power_w, found["GPU-b"].power_w) == (250.0, 99.0)
    sampler.close()


def test_a_gpu_that_goes_and_comes_begins_anew(driver: Driver) -> None:
    driver.tell([GPU])
    sampler = NvmlSampler()
    told(sampler, 0.0, "GPU-a")
    driver.tell([])
    assert told(sampler, 10.0, "GPU-a") == {}
    driver.tell([GPU])
    assert told(sampler, 20.0, "GPU-a") == {}
    assert told(sampler, 30.0, "GPU-a")["GPU-a"].span_s == 10.0
    sampler.close()


def test_a_counter_that_begins_again_and_a_clock_that_steps_back_make_nothing_up(
    driver: Driver,
) -> None:
    driver.tell([GPU])
    sampler = NvmlSampler()
    told(sampler, 0.0, "GPU-a")
    driver.tell([replace(GPU, energy_mj=7)])
    assert told(sampler, 10.0, "GPU-a")["GPU-a"].energy_j == 2500.0  # from power
    assert told(sampler, 5.0, "GPU-a") == {}
    assert told(sampler, 15.0, "GPU-a")["GPU-a"].span_s == 10.0
    sampler.close()


def test_each_error_is_told_once_and_only_what_is_one(driver: Driver) -> None:
    odd = replace(GPU, uuid="GPU-b", xids=[1], event_type=1 << 20)
    driver.tell([replace(GPU, xids=[79]), odd])
    sampler = NvmlSampler()
    looks = itertools.count(1)

    def look() -> list[tuple[str, int | None]]:
        found = told(sampler, float(next(looks)), "GPU-a", "GPU-b")
        return [(it.gpu, it.xid) for it in found.values() if it.xid is not None]

    seen = until(look)  # a thread waits for them
    found = told(sampler, float(next(looks)), "GPU-a", "GPU-b")
    sampler.close()
    assert seen == [("GPU-a", 79)]
    assert [it.xid for it in found.values()] == [None, None]


def test_gpus_and_slices_are_found_and_processes_without_memory_too(driver: Driver) -> None:
    driver.tell([GPU, SLICED])
    source = NvmlSource(ours=lambda _pid, _uuid: True)
    assert [it.uuid for it in source.devices()] == ["GPU-a", "MIG-1", "MIG-2"]
    assert source.processes("GPU-a") == (os.getpid(),)
    driver.tell([replace(GPU, grows=2), replace(SLICED, slices=None)])  # no longer divided
    assert [it.uuid for it in source.devices()][:2] == ["GPU-a", "GPU-s"]
    assert len(source.processes("GPU-a") or ()) == 3
    driver.tell([replace(GPU, grows=50)])  # more than there is room for: not known, and no error
    assert source.processes("GPU-a") is None


def test_no_gpus_and_a_lost_one_are_found_as_they_are(driver: Driver) -> None:
    source = NvmlSource(ours=lambda _pid, _uuid: True)
    assert source.devices() == ()
    driver.tell([GPU])
    assert [it.state for it in source.devices()] == [DeviceState.USABLE]
    driver.tell([replace(GPU, fails={"nvmlDeviceGetUUID": LOST})])
    assert [(it.uuid, it.state) for it in source.devices()] == [("GPU-a", DeviceState.BROKEN)]
    driver.tell([replace(GPU, mig_mode=7)])  # a mode that nobody knows is no division
    assert [it.uuid for it in source.devices()] == ["GPU-a"]
