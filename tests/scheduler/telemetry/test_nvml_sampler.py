"""GPUs measured through NVML: reported values are stored, missing values are None."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pynvml
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.telemetry import GpuSample
from benchpool_scheduler.telemetry.nvml import NvmlSampler
from benchpool_support.nvml import (
    LOST,
    MISMATCH,
    NOT_SUPPORTED,
    UNKNOWN,
    ScriptedGpu,
    ScriptedLibrary,
)

SECOND = 1_000_000
"""One second in the driver's unit, in microseconds."""

FULL = ScriptedGpu(
    "GPU-a",
    used_mib=40 * 1024,
    utilisation=[(1 * SECOND, 0)],
    percent_now=7,
    power_mw=300_000,
    energy_mj=1_000_000,
    celsius=61,
    clock_reasons=pynvml.nvmlClocksEventReasonSwPowerCap | pynvml.nvmlClocksEventReasonGpuIdle,
    gpm=0.4,
)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> ScriptedLibrary:
    library = ScriptedLibrary([replace(FULL)])
    library.install(monkeypatch)
    return library


@pytest.fixture
def sampler(library: ScriptedLibrary) -> Iterator[NvmlSampler]:
    sampler = NvmlSampler()
    yield sampler
    sampler.close()


def one(sampler: NvmlSampler, now: float) -> GpuSample:
    (sample,) = sampler.sample(["GPU-a"], now, {})
    return sample


def test_first_look_starts_span_and_second_ends_it(
    library: ScriptedLibrary, sampler: NvmlSampler
) -> None:
    assert sampler.sample(["GPU-a"], 100.0, {}) == []
    gpu = library.gpus[0]
    gpu.utilisation = [(6 * SECOND, 100), (11 * SECOND, 0)]
    gpu.energy_mj = 3_500_000
    sample = one(sampler, 110.0)
    assert (sample.at, sample.span_s, sample.simulated) == (110.0, 10.0, False)
    assert sample.activity == 0.5  # all samples since the last look count
    assert (sample.memory_used_gib, sample.memory_total_gib) == (40.0, 80.0)
    assert (sample.power_w, sample.energy_j, sample.temperature_c) == (300.0, 2500.0, 61.0)
    assert sample.throttled == ("power-cap",)
    assert sample.sm_activity == pytest.approx(0.4)


def test_old_driver_and_small_model_are_partly_measured(
    library: ScriptedLibrary, sampler: NvmlSampler
) -> None:
    library.gpus[0] = replace(ScriptedGpu("GPU-a"), percent_now=30, power_mw=100_000, used_mib=1024)
    library.missing = frozenset({"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetSamples"})
    sampler.sample(["GPU-a"], 0.0, {})
    sample = one(sampler, 10.0)
    assert sample.activity == 0.3
    assert sample.energy_j == 1000.0  # without counter: power times time
    assert sample.memory_used_gib == pytest.approx((1024 + 600) / 1024)
    assert (sample.temperature_c, sample.sm_activity, sample.throttled) == (None, None, ())


def test_slice_has_memory_but_no_activity(library: ScriptedLibrary, sampler: NvmlSampler) -> None:
    library.gpus[0] = ScriptedGpu("GPU-a", used_mib=512)
    sampler.sample(["GPU-a"], 0.0, {})
    sample = one(sampler, 10.0)
    assert (sample.activity, sample.memory_used_gib) == (None, 0.5)


def test_unsupported_query_is_not_repeated(library: ScriptedLibrary, sampler: NvmlSampler) -> None:
    library.gpus[0] = ScriptedGpu("GPU-a", percent_now=0)
    for tick in range(5):
        sampler.sample(["GPU-a"], 10.0 * tick, {})
    assert library.calls.count("nvmlDeviceGetSamples") == 1
    assert library.calls.count("nvmlDeviceGetPowerUsage") == 1


def test_each_value_is_queried_once_per_gpu_and_tick(
    library: ScriptedLibrary, sampler: NvmlSampler
) -> None:
    sampler.sample(["GPU-a"], 0.0, {})
    library.calls.clear()
    sampler.sample(["GPU-a"], 10.0, {})
    asked = [it for it in library.calls if not it.startswith("nvmlEvent")]
    assert len(asked) == len(set(asked))
    assert "nvmlDeviceGetHandleByUUID" not in asked


def test_counter_reset_yields_no_negative_energy(
    library: ScriptedLibrary, sampler: NvmlSampler
) -> None:
    sampler.sample(["GPU-a"], 0.0, {})
    library.gpus[0].energy_mj = 5
    assert one(sampler, 10.0).energy_j == 3000.0


def test_lost_gpu_is_excluded_until_it_returns(
    library: ScriptedLibrary, sampler: NvmlSampler
) -> None:
    sampler.sample(["GPU-a"], 0.0, {})
    library.fails["nvmlDeviceGetTotalEnergyConsumption"] = LOST
    assert sampler.sample(["GPU-a"], 10.0, {}) == []
    library.fails.clear()
    assert sampler.sample(["GPU-a"], 20.0, {}) == []
    assert one(sampler, 30.0).span_s == 10.0


def test_missing_driver_is_reported_and_retried(
    library: ScriptedLibrary, sampler: NvmlSampler
) -> None:
    library.init_result = MISMATCH
    assert sampler.sample(["GPU-a"], 0.0, {}) == ()
    assert "NVML does not answer" in str(sampler.problem)
    library.init_result = 0
    assert sampler.sample(["GPU-a"], 10.0, {}) == ()
    assert sampler.sample(["GPU-a"], 40.0, {}) == []
    assert not sampler.problem
    assert one(sampler, 50.0).activity is not None


def test_stopped_clock_makes_no_sample(sampler: NvmlSampler) -> None:
    sampler.sample(["GPU-a"], 10.0, {})
    assert sampler.sample(["GPU-a"], 10.0, {}) == []
    assert sampler.sample(["GPU-a"], 5.0, {}) == []


def test_xid_error_appears_only_in_next_sample(
    library: ScriptedLibrary, sampler: NvmlSampler
) -> None:
    sampler.sample(["GPU-a"], 0.0, {})
    library.gpus[0].xids.append(79)
    for _ in range(2):  # known after the second query
        library.idle.clear()
        assert library.idle.wait(120)
    assert not library.gpus[0].xids
    assert one(sampler, 10.0).xid == 79
    assert one(sampler, 20.0).xid is None


FUNCTIONS = (
    *("nvmlDeviceGetSamples", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo_v2"),
    *("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetTemperature"),
    *("nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetCurrentClocksEventReasons"),
    *("nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet"),
    *("nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetWait_v2", "nvmlInitWithFlags"),
    *("nvmlDeviceGetHandleByUUID", "nvmlDeviceGetUUID", "nvmlShutdown"),
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    missing=st.frozensets(st.sampled_from(FUNCTIONS)),
    fails=st.dictionaries(
        st.sampled_from(FUNCTIONS), st.sampled_from([LOST, MISMATCH, NOT_SUPPORTED, UNKNOWN, 999])
    ),
    late=st.booleans(),
)
def test_sampler_never_raises(
    missing: frozenset[str], fails: dict[str, int], late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = ScriptedLibrary([replace(FULL), ScriptedGpu("GPU-b")], missing=tuple(missing))
    library.install(monkeypatch)
    library.waiting.set()
    sampler = NvmlSampler()
    if not late:
        library.fails = dict(fails)
    sampler.sample(["GPU-a", "GPU-b", "GPU-gone"], 0.0, {})
    library.fails = dict(fails)
    found = sampler.sample(["GPU-a", "GPU-b"], 60.0, {})
    for it in found:
        assert it.activity is None or 0 <= it.activity <= 1
        assert it.energy_j is None or it.energy_j >= 0
    library.fails = {}
    sampler.close()
