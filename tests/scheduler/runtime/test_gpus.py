"""GPUs from NVML with all of its faults, and simulated GPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.runtime import Device, DeviceState
from benchpool_scheduler.runtime.local import LocalRuntime, NvmlSource, simulated
from benchpool_scheduler.runtime.local.gpus import find_devices, started_by_us
from benchpool_scheduler.runtime.local.machine import GpuLinks
from benchpool_scheduler.worker.gpu_files import GpuFiles
from benchpool_support.nvml import (
    LOST,
    MISMATCH,
    NOT_SUPPORTED,
    UNKNOWN,
    ScriptedGpu,
    ScriptedLibrary,
)
from benchpool_support.waiting import until_async
from benchpool_support.workers import Listener, python_launch, until_logged

A, B = ScriptedGpu("GPU-a"), ScriptedGpu("GPU-b", model="NVIDIA H200", memory_mib=143771)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> ScriptedLibrary:
    library = ScriptedLibrary([replace(A), replace(B)])
    library.install(monkeypatch)
    return library


def test_gpus_have_uuid_model_memory_and_index(library: ScriptedLibrary) -> None:
    first, second = NvmlSource("n0").devices()
    assert (first.uuid, first.index, first.model, first.memory_mib, first.node) == (
        "GPU-a",
        0,
        "NVIDIA A100-SXM4-80GB",
        81920,
        "n0",
    )
    assert (second.uuid, second.index, second.model) == ("GPU-b", 1, "NVIDIA H200")
    assert not first.simulated
    assert first.state is second.state is DeviceState.USABLE


def test_nvml_is_initialised_once(library: ScriptedLibrary) -> None:
    source = NvmlSource()
    source.devices()
    source.devices()
    assert library.calls.count("nvmlInitWithFlags") == 1


def test_missing_nvml_library_gives_no_gpus_with_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pynvml, "nvmlLib", None)

    def no_library(name: str) -> object:
        raise OSError(name)

    monkeypatch.setattr(pynvml, "CDLL", no_library)
    source = NvmlSource()
    assert source.devices() == ()
    assert "Not Found" in source.note
    assert find_devices() is None


def test_driver_mismatch_gives_no_gpus_with_reason(
    library: ScriptedLibrary,
) -> None:
    library.init_result = MISMATCH
    source = NvmlSource()
    assert source.devices() == ()
    assert source.note.startswith("NVML does not answer")


def test_gpus_are_broken_while_nvml_fails_and_recover(
    library: ScriptedLibrary,
) -> None:
    source = NvmlSource()
    source.devices()
    library.fails["nvmlDeviceGetCount_v2"] = UNKNOWN
    assert [device.state for device in source.devices()] == [DeviceState.BROKEN] * 2
    library.fails.clear()
    assert [device.state for device in source.devices()] == [DeviceState.USABLE] * 2


def test_lost_gpu_is_broken_and_second_gpu_usable(
    library: ScriptedLibrary,
) -> None:
    source = NvmlSource()
    source.devices()
    library.gpus[0].fails = {"nvmlDeviceGetUUID": LOST}
    lost, other = source.devices()
    assert (lost.uuid, lost.state) == ("GPU-a", DeviceState.BROKEN)
    assert lost.note is not None
    assert other.state is DeviceState.USABLE
    library.gpus[0].fails = {}
    assert {device.state for device in source.devices()} == {DeviceState.USABLE}


def test_gpu_broken_from_start_is_listed_as_broken(
    library: ScriptedLibrary,
) -> None:
    library.gpus[1].fails = {"nvmlDeviceGetHandleByIndex_v2": LOST}
    usable, broken = NvmlSource().devices()
    assert (usable.state, broken.state) == (DeviceState.USABLE, DeviceState.BROKEN)
    assert broken.index == 1


def test_unlisted_gpu_is_broken(library: ScriptedLibrary) -> None:
    source = NvmlSource()
    source.devices()
    del library.gpus[0]
    states = {device.uuid: device.state for device in source.devices()}
    assert states == {"GPU-a": DeviceState.BROKEN, "GPU-b": DeviceState.USABLE}


def test_model_follows_uuid_after_reordering(library: ScriptedLibrary) -> None:
    source = NvmlSource()
    source.devices()
    library.gpus.reverse()
    assert {device.uuid: device.model for device in source.devices()} == {
        "GPU-a": A.model,
        "GPU-b": B.model,
    }


def test_foreign_process_marks_gpu_foreign(library: ScriptedLibrary) -> None:
    library.gpus[0].pids = [4711, 4712]
    foreign, free = NvmlSource(ours=lambda pid, uuid: False).devices()
    assert foreign.state is DeviceState.FOREIGN
    assert foreign.note == "in use by 2 process(es) that benchpool did not start: 4711, 4712"
    assert free.state is DeviceState.USABLE


def test_own_process_leaves_gpu_usable(library: ScriptedLibrary) -> None:
    library.gpus[0].pids = [4711]
    source = NvmlSource(ours=lambda pid, uuid: (pid, uuid) == (4711, "GPU-a"))
    assert source.devices()[0].state is DeviceState.USABLE
    assert source.processes("GPU-a") == (4711,)
    assert source.processes("GPU-b") == ()
    assert source.processes("GPU-unheard-of") is None


def test_mig_slices_are_listed_as_gpus(library: ScriptedLibrary) -> None:
    parts = [
        ScriptedGpu("MIG-1", model="A100 3g.40gb", memory_mib=40000),
        None,
        ScriptedGpu("MIG-2"),
    ]
    library.gpus[0].slices = parts
    assert [(device.uuid, device.index) for device in NvmlSource().devices()] == [
        ("MIG-1", 0),
        ("MIG-2", 0),
        ("GPU-b", 1),
    ]


def test_partitioned_gpu_without_slices_is_not_listed(library: ScriptedLibrary) -> None:
    library.gpus[0].slices = [None, None]
    assert [device.uuid for device in NvmlSource().devices()] == ["GPU-b"]


def test_sixteen_or_no_gpus_are_listed(library: ScriptedLibrary) -> None:
    library.gpus = [ScriptedGpu(f"GPU-{n}") for n in range(16)]
    assert len(NvmlSource().devices()) == 16
    library.gpus = []
    assert NvmlSource().devices() == ()


OPTIONAL = [
    "nvmlDeviceGetName",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetComputeRunningProcesses_v2",
]


@pytest.mark.parametrize("name", OPTIONAL)
@pytest.mark.parametrize("how", ["missing", "not supported"])
def test_missing_driver_functions_leave_gpu_usable(
    monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    library = ScriptedLibrary([replace(A)], missing=[name] if how == "missing" else [])
    library.install(monkeypatch)
    if how == "not supported":
        library.gpus[0].fails = {name: NOT_SUPPORTED}
    (device,) = NvmlSource().devices()
    assert (device.uuid, device.state) == ("GPU-a", DeviceState.USABLE)
    if name == "nvmlDeviceGetMemoryInfo":
        assert device.memory_mib is None


@settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    st.dictionaries(
        st.sampled_from(
            [*OPTIONAL, "nvmlDeviceGetUUID", "nvmlDeviceGetCount_v2", "nvmlInitWithFlags",
             "nvmlDeviceGetHandleByIndex_v2", "nvmlShutdown", "nvmlDeviceGetMaxMigDeviceCount"]
        ),
        st.sampled_from([1, 2, 3, 4, 6, 7, 9, 10, 13, 15, 16, 17, 18, 25, 27, 999, 12345]),
    ),
    st.booleans(),
)  # fmt: skip
def test_fault_combinations_raise_no_exception(
    monkeypatch: pytest.MonkeyPatch, fails: dict[str, int], again: bool
) -> None:
    library = ScriptedLibrary([replace(A, pids=[1]), replace(B)])
    library.install(monkeypatch)
    source = NvmlSource(ours=lambda pid, uuid: True)
    if again:
        source.devices()
    library.fails = dict(fails)
    source.devices()
    source.processes("GPU-a")
    library.fails.clear()
    assert {device.uuid for device in source.devices()} >= {"GPU-a", "GPU-b"}


def test_simulated_gpus_have_stable_uuids_and_are_marked() -> None:
    first, again = simulated(8, "A100"), simulated(8, "A100")
    assert first.devices() == again.devices()
    assert len({device.uuid for device in first.devices()}) == 8
    assert all(device.simulated and device.uuid.startswith("GPU-") for device in first.devices())
    assert "simulated" in first.note


async def test_worker_processes_are_recognised_on_their_gpus_only(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '100'], env={})\n"
        "print('pid', os.getpid(), child.pid); time.sleep(100)",
        env={"PATH": "/usr/bin:/bin", "BENCHPOOL_JOB_ID": "x"},
        gpus=("GPU-a", "GPU-b"),
    )
    await runtime.start(launch)
    log = await until_logged(runtime, launch.worker, b"\n")
    worker, child = (int(word) for word in log.split()[1:3])
    assert started_by_us(worker, "GPU-a")
    assert started_by_us(child, "GPU-b")
    assert not started_by_us(worker, "GPU-c")
    assert not started_by_us(os.getpid(), "GPU-a")
    assert not started_by_us(2**22 + 1, "GPU-a")


FAKE = """
#include <string.h>
typedef struct { unsigned long long total, free, used; } memory;
int nvmlInitWithFlags(unsigned f) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int r) { return "scripted"; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)(i + 1UL); return 0; }
int nvmlDeviceGetUUID(void *d, char *s, unsigned n) {
  strcpy(s, d == (void *)1 ? "GPU-one" : "GPU-two"); return 0; }
int nvmlDeviceGetName(void *d, char *s, unsigned n) { strcpy(s, "Scripted GPU"); return 0; }
int nvmlDeviceGetMemoryInfo(void *d, memory *m) { m->total = 1ULL << 34; return 0; }
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="a C compiler is needed")
def test_shared_library_is_loaded_by_name(tmp_path: Path) -> None:
    (tmp_path / "fake.c").write_text(FAKE)
    built = ["gcc", "-shared", "-fPIC", "-o", "libnvidia-ml.so.1", "fake.c"]
    subprocess.run(built, cwd=tmp_path, check=True)
    program = (
        "from benchpool_scheduler.runtime.local import find_devices\n"
        "for device in find_devices().devices():\n"
        "    print(device.uuid, device.model, device.memory_mib, device.state)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "GPU-one Scripted GPU 16384 usable",
        "GPU-two Scripted GPU 16384 usable",
    ]


async def test_hanging_driver_does_not_delay_cached_devices(tmp_path: Path) -> None:
    class Hanging:
        note = "hangs from the second question on"

        def __init__(self) -> None:
            self.free, self.asked = threading.Event(), 0

        def devices(self) -> tuple[Device, ...]:
            self.asked += 1
            if self.asked > 1:
                self.free.wait(120)
            return simulated(self.asked).devices()

        def processes(self, uuid: str) -> tuple[int, ...]:
            return ()

        def links(self) -> GpuLinks:
            return GpuLinks()

        def device_files(self) -> GpuFiles:
            return GpuFiles()

    source = Hanging()
    runtime = LocalRuntime(tmp_path, source, devices_s=0.0, driver_s=0.2)
    assert len(await runtime.devices()) == 1
    assert len(await runtime.devices()) == 1
    assert len(await runtime.devices()) == 1
    assert source.asked == 2  # no further query while it hangs
    source.free.set()
    await until_async(runtime.devices, holds=lambda found: len(found) != 1)


# ------------------------------------------------------------------------------- links


def test_nvlinks_rank_above_pcie(library: ScriptedLibrary) -> None:
    library.gpus = [
        ScriptedGpu("GPU-0", nvlinks=["0000:GPU-1"], ancestors={"GPU-1": 50, "GPU-2": 10}),
        ScriptedGpu("GPU-1", nvlinks=["0000:GPU-0"], ancestors={"GPU-0": 50, "GPU-2": 50}),
        ScriptedGpu("GPU-2", ancestors={"GPU-0": 10, "GPU-1": 50}),
    ]
    found = NvmlSource().links()
    assert found.gpus == ("GPU-0", "GPU-1", "GPU-2")
    assert found.links == ((0, 11, 5), (11, 0, 1), (5, 1, 0))


def test_gpus_on_nvswitch_share_smaller_link_count(library: ScriptedLibrary) -> None:
    library.gpus = [
        ScriptedGpu("GPU-0", nvlinks=["0000:switch"] * 4),
        ScriptedGpu("GPU-1", nvlinks=["0000:switch"] * 2),
    ]
    assert NvmlSource().links().links == ((0, 20), (20, 0))


def test_sockets_are_reported_for_all_gpus_or_none(library: ScriptedLibrary) -> None:
    library.gpus = [ScriptedGpu("GPU-0", cores=1), ScriptedGpu("GPU-1")]
    assert NvmlSource().links().sockets == ()


def test_unavailable_driver_leaves_links_unknown(library: ScriptedLibrary) -> None:
    library.init_result = MISMATCH
    assert NvmlSource().links() == GpuLinks()


async def test_local_node_reports_cores_memory_and_links(
    library: ScriptedLibrary, tmp_path: Path
) -> None:
    library.gpus = [
        ScriptedGpu("GPU-0", nvlinks=["0000:GPU-1"]),
        ScriptedGpu("GPU-1", nvlinks=["0000:GPU-0"]),
    ]
    runtime = LocalRuntime(tmp_path, NvmlSource("n0"))
    (node,) = await runtime.nodes()
    assert (node.name, node.gpus, node.links) == ("n0", ("GPU-0", "GPU-1"), ((0, 10), (10, 0)))
    assert node.cpus == len(os.sched_getaffinity(0))
    assert node.memory_gib is not None
    assert node.memory_gib > 0.1
    assert await runtime.nodes() is await runtime.nodes()
