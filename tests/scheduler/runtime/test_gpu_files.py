"""Device files that a process with some GPUs or slices of GPUs (MIG) must not open.

The driver's lists and the answers of NVML are scripted, because no partitioned GPU was available.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from benchpool_scheduler.runtime.local import NvmlSource
from benchpool_scheduler.worker import gpu_files
from benchpool_scheduler.worker.gpu_files import GpuFiles, MachineFiles, Part, capability_files
from benchpool_support.nvml import ScriptedGpu, ScriptedLibrary

WHOLE = {0: (195, 0), 1: (195, 1)}
MINORS = """\
config 1
monitor 2
gpu0/gi1/access 12
gpu0/gi1/ci0/access 13
gpu0/gi1/ci1/access 14
gpu0/gi2/access 21
gpu0/gi2/ci0/access 22
gpu1/gi1/access 147
gpu1/gi1/ci0/access 148
gpu7/gi1/access 957
"""
DEVICES = (
    "Character devices:\n  1 mem\n195 nvidia\n507 nvidia-caps\n508 nvidia-caps-imex-channels\n"
)
MACHINE = MachineFiles(WHOLE, capability_files(MINORS, DEVICES, WHOLE))
FILES = GpuFiles(
    MACHINE,
    {
        "MIG-a": Part(0, slice=True, instances=(1, 0)),
        "MIG-b": Part(0, slice=True, instances=(1, 1)),
        "MIG-c": Part(0, slice=True, instances=(2, 0)),
        "MIG-odd": Part(0, slice=True, instances=(13, 0)),
        "MIG-untold": Part(0, slice=True),
        "GPU-1": Part(1),
    },
)


def minors(denied: list[tuple[int, int]], major: int = 507) -> list[int]:
    return [minor for of, minor in denied if of == major]


def test_slice_allows_its_gpu_and_two_capabilities() -> None:
    denied = FILES.denied(["MIG-a"])
    assert minors(denied, 195) == [1]
    assert minors(denied) == [1, 2, 14, 21, 22, 147, 148]


def test_two_slices_allow_files_of_both() -> None:
    assert minors(FILES.denied(["MIG-a", "MIG-c"])) == [1, 2, 14, 147, 148]
    assert minors(FILES.denied(["MIG-a", "MIG-b"])) == [1, 2, 21, 22, 147, 148]


def test_whole_gpu_denies_slice_and_config_files() -> None:
    denied = FILES.denied(["GPU-1"])
    assert minors(denied, 195) == [0]
    assert minors(denied) == [1, 2, 12, 13, 14, 21, 22, 147, 148]


def test_worker_without_gpu_is_denied_all_files() -> None:
    assert FILES.denied([]) == sorted(MACHINE.all())


@pytest.mark.parametrize("slice_", ["MIG-untold", "MIG-odd"])
def test_slice_with_unknown_capabilities_is_denied_only_foreign_gpus(
    slice_: str,
) -> None:
    assert FILES.denied([slice_]) == [(195, 1)]


def test_unknown_gpu_disables_denials() -> None:
    assert FILES.denied(["GPU-1", "GPU-unheard-of"]) == []


def test_absent_gpus_are_not_denied() -> None:
    assert 957 not in minors(FILES.denied([]))


@pytest.mark.parametrize("devices", ["", "Character devices:\n195 nvidia\n"])
def test_driver_without_capabilities_has_no_capability_files(devices: str) -> None:
    assert capability_files(MINORS, devices, WHOLE) == {}


def test_invalid_driver_entries_are_skipped() -> None:
    assert capability_files("gpu0/gi1/access\nnonsense\n\nconfig x\n", DEVICES, WHOLE) == {}


def test_nvml_and_driver_lists_identify_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slices = [ScriptedGpu("MIG-a", instances=(1, 0)), None, ScriptedGpu("MIG-x")]
    gpus = [ScriptedGpu("GPU-0", minor=0, slices=slices), ScriptedGpu("GPU-1", minor=1)]
    ScriptedLibrary([*gpus, ScriptedGpu("GPU-2")]).install(monkeypatch)
    (tmp_path / "driver" / "nvidia-caps").mkdir(parents=True)
    (tmp_path / "driver" / "nvidia-caps" / "mig-minors").write_text(MINORS)
    (tmp_path / "devices").write_text(DEVICES)
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / "dev" / name).touch()
    numbers = {f"{tmp_path}/dev/nvidia{index}": numbers for index, numbers in WHOLE.items()}
    monkeypatch.setattr(gpu_files, "numbers_of", numbers.get)
    look = partial(gpu_files.look, str(tmp_path / "dev"), str(tmp_path))
    monkeypatch.setattr(gpu_files, "look", look)
    found = NvmlSource().device_files()
    assert found.machine == MACHINE
    assert found.parts == {
        "GPU-0": Part(0),
        "MIG-a": Part(0, slice=True, instances=(1, 0)),
        "MIG-x": Part(0, slice=True),
        "GPU-1": Part(1),
    }


def test_device_files_are_found_by_name(tmp_path: Path) -> None:
    try:
        for name in ("nvidia0", "nvidia12", "nvidia-uvm", "nvidiactl"):
            os.mknod(tmp_path / name, 0o020666, os.makedev(195, len(name)))
    except PermissionError:
        pytest.skip("only root may make device files")
    (tmp_path / "nvidia3").touch()
    assert gpu_files.look(str(tmp_path), str(tmp_path)).gpus == {0: (195, 7), 12: (195, 8)}
    assert gpu_files.look(str(tmp_path / "none"), str(tmp_path)) == MachineFiles()
