"""Assumptions about NVIDIA's driver, checked with every driver.

The drivers are a script, a library in C (a shared object, used through the binding's own
structures), and, on a machine with a GPU, the real driver.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pynvml
import pytest

from benchpool_scheduler.telemetry import nvml_conformance
from benchpool_scheduler.telemetry.nvml import NvmlSampler
from benchpool_support import fake_driver
from benchpool_support.nvml import (
    NOT_SUPPORTED,
    ScriptedGpu,
    ScriptedLibrary,
)
from benchpool_support.nvml_drivers import (
    GPU,
    SECOND,
    SLICED,
    Driver,
    Scripted,
    sampled,
    second_look,
)

RECORDED = Path(__file__).parent / "drivers"
"""Recorded answers of real drivers: files of ``benchpool_scheduler.telemetry.nvml_conformance``."""

# ----------------------------------------------------------------- values


def test_gpu_sample_contains_all_fields(driver: Driver) -> None:
    it = second_look(driver, GPU)["GPU-a"]
    assert (it.activity, it.span_s) == (0.3, 10.0)
    assert it.sm_activity == pytest.approx(0.4)
    assert (it.memory_used_gib, it.memory_total_gib) == (4.0, 80.0)
    assert (it.power_w, it.energy_j, it.temperature_c) == (250.0, 0.0, 60.0)
    assert (it.throttled, it.xid, it.parent) == (("power-cap",), None, None)


def test_samples_since_last_look_are_merged(driver: Driver) -> None:
    driver.set_gpus([replace(GPU, utilisation=[(1 * SECOND, 0)])])
    sampler = NvmlSampler()
    sampled(sampler, 0.0, "GPU-a")
    driver.set_gpus(
        [replace(GPU, utilisation=[(1 * SECOND, 0), (6 * SECOND, 100), (11 * SECOND, 0)])]
    )
    assert sampled(sampler, 10.0, "GPU-a")["GPU-a"].activity == 0.5
    sampler.close()


def test_slice_has_own_memory_and_activity_by_performance_monitoring(
    driver: Driver,
) -> None:
    found = second_look(driver, SLICED)
    one, two = found["MIG-1"], found["MIG-2"]
    assert one.activity == one.sm_activity == pytest.approx(0.2)
    assert two.activity == pytest.approx(0.5)
    assert two.sm_activity == pytest.approx(0.1)
    assert one.memory_total_gib == 20.0
    for it in (one, two):  # board values, unknown for one slice
        assert (it.power_w, it.energy_j, it.parent) == (None, None, "GPU-s")


def test_slice_activity_is_unknown_without_performance_monitoring(driver: Driver) -> None:
    found = second_look(driver, replace(SLICED, gpm=None, percent_now=90))
    assert {it.activity for it in found.values()} == {None}
    assert found["MIG-1"].memory_used_gib == pytest.approx(100 / 1024)


def test_slices_of_one_instance_have_no_activity(driver: Driver) -> None:
    parts = [replace(it, instances=(1, n)) for n, it in enumerate(SLICED.slices or ()) if it]
    found = second_look(driver, replace(SLICED, slices=parts))
    assert {it.activity for it in found.values()} == {None}


def test_slice_activity_is_capped_by_gpu(driver: Driver) -> None:
    sevenths = [
        ScriptedGpu(f"MIG-{n}", memory_mib=10240, used_mib=1000 * n, instances=(n, 0), gpm=1.0)
        for n in range(1, 8)
    ]
    found = second_look(driver, replace(SLICED, slices=sevenths))
    assert len(found) == 7
    used = sum(it.memory_used_gib or 0.0 for it in found.values())
    assert used <= SLICED.memory_mib / 1024
    assert all((it.active_s or 0.0) <= it.span_s for it in found.values())
    assert [it for it in found.values() if it.energy_j is not None] == []


# ----------------------------------------------------------------- equal drivers


def observed(gpus: Sequence[ScriptedGpu], driver: Driver) -> dict[str, Any]:
    driver.set_gpus(gpus)
    found = nvml_conformance.look(sleep=lambda _: None)
    text: dict[str, Any] = json.loads(nvml_conformance.as_json(replace(found, median_us={})))
    return text


def test_script_and_library_answer_alike(
    built: fake_driver.FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites: tuple[list[ScriptedGpu], ...] = (
        [],
        [GPU],
        [GPU, SLICED],
        [replace(GPU, gpm=None, energy_mj=None, percent_now=None)],
        [replace(GPU, fails={"nvmlDeviceGetMemoryInfo_v2": NOT_SUPPORTED}), SLICED],
        [replace(GPU, uuid=f"GPU-{n}") for n in range(16)],
    )
    answers = []
    for install, driver in (
        (ScriptedLibrary([]), None),
        (built, built),
    ):
        install.install(monkeypatch)
        at: Driver = driver or Scripted(install)  # type: ignore[arg-type]
        answers.append([observed(gpus, at) for gpus in sites])
    assert answers[0] == answers[1]
    assert [it["fingerprint"] for it in answers[0]] == [it["fingerprint"] for it in answers[1]]


def shape(answer: Any) -> Any:
    """Return the structure of an answer: names and types, without values."""
    if isinstance(answer, dict):
        return {key: shape(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [shape(it) for it in answer[:1]]
    return type(answer).__name__


@pytest.mark.parametrize("golden", sorted(RECORDED.glob("*.json")), ids=lambda path: path.stem)
def test_fake_drivers_answer_in_shape_of_real_drivers(driver: Driver, golden: Path) -> None:
    real = json.loads(golden.read_text())
    assert [it for it in real["assumptions"] if it["holds"] is False] == []
    (faked,) = observed([GPU], driver)["gpus"]
    for answers in real["gpus"]:
        assert shape(faked) == shape(answers)


def test_every_assumption_holds(driver: Driver) -> None:
    driver.set_gpus([GPU, SLICED])
    found = nvml_conformance.look(sleep=lambda _: None)
    assert [it for it in found.assumptions if it.holds is not True] == []


def test_driver_breaking_assumption_is_detected(driver: Driver) -> None:
    driver.set_gpus([replace(GPU, used_mib=GPU.memory_mib + 1)])
    found = nvml_conformance.look(sleep=lambda _: None)
    wrong = [it.what for it in found.assumptions if it.holds is False]
    assert "used memory is at most the total memory" in wrong


def test_golden_file_names_no_gpu_process_or_host(driver: Driver) -> None:
    driver.set_gpus([GPU, SLICED])
    text = nvml_conformance.as_json(nvml_conformance.look(sleep=lambda _: None))
    assert json.loads(text)["driver"] == "999.0-fake"
    for word in ("GPU-a", "MIG-1", str(os.getpid()), f'"{os.uname().nodename}"'):
        assert word not in text


# ----------------------------------------------------------------- other processes, the real driver


def test_library_loads_in_another_process_and_command_writes_file(
    built: fake_driver.FakeDriver, tmp_path: Path
) -> None:
    built.set_gpus([GPU])
    golden = tmp_path / "golden.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchpool_scheduler.telemetry.nvml_conformance", str(golden)],
        env={**os.environ, **built.environment()},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "driver 999.0-fake, 1 GPUs and slices" in done.stdout
    assert json.loads(golden.read_text())["gpus"][0]["power"] == {"answer": 250_000}


def test_library_has_at_least_forty_functions(built: fake_driver.FakeDriver) -> None:
    source = (fake_driver.SOURCES / "nvml.c").read_text()
    names = set(
        re.findall(r"\b(?:int|NUMBER\() ?(nvml[A-Z]\w+)", source.replace("NUMBER(", "int "))
    )
    assert len(names) >= 40
    library: Any = __import__("ctypes").CDLL(str(built.library))
    assert [name for name in names if not hasattr(library, name)] == []


def test_real_driver_meets_contract() -> None:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        pytest.skip(f"no NVIDIA driver on this machine ({error})")
    pynvml.nvmlShutdown()
    found = nvml_conformance.look()
    assert [it for it in found.assumptions if it.holds is False] == []
