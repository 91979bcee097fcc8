"""The trial parks a real process through the real calls, and reports the failed step."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from benchpool_scheduler.core.benches.parking_gates import (
    HARMFUL,
    KernelFacts,
    MachineFacts,
    closed,
    gates_of_kernel,
    gates_of_machine,
    host_memory_left,
)
from benchpool_scheduler.runtime.local.parking import libcuda_driver, machine_facts, trial
from benchpool_scheduler.runtime.local.parking.libcuda_driver import LibcudaDriver
from benchpool_scheduler.workstation import doctor, findings, parking
from benchpool_scheduler.workstation.options import DoctorOptions
from benchpool_scheduler.workstation.state import StateFolder
from benchpool_support.scripted_cuda import GPU, OTHER, ScriptedMachine

GIB = 2**30
GOOD = MachineFacts("x86_64", "580.95.05", True, "", 256 * GIB, 200 * GIB, None, "580.95.05")
KERNEL = KernelFacts(gpus=1, processes=1, used=40 * GIB, managed=0, nccl=False, slice=False)


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make host memory sufficient on any machine."""
    memory = {"MemTotal": 256 * GIB, "MemAvailable": 200 * GIB}
    monkeypatch.setattr(machine_facts, "memory_of_machine", lambda: memory)
    monkeypatch.setattr(machine_facts, "cgroup_left", lambda _: None)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


def test_trial_parks_and_restores_and_is_stored_for_driver(
    machine: ScriptedMachine, driver: LibcudaDriver, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    found = parking.attempt(state, driver, machine)
    assert (found.level, "A trial succeeded" in found.text) == ("ok", True), found
    kept = trial.recorded(state)
    assert kept is not None
    assert kept.driver == "580.95.05"
    assert machine.processes(GPU) == []
    (parked,) = [int(it.name) for it in machine.place.iterdir() if it.name.isdecimal()]
    assert machine.state(parked) == "checkpointed"  # ended without harm
    assert not psutil.pid_exists(parked)
    later = replace(GOOD, driver="590.1.1", canary=kept.driver)
    assert [gate.name for gate in closed(gates_of_machine(later))] == ["trial"]


def test_trial_uses_idle_gpu(
    machine: ScriptedMachine, driver: LibcudaDriver, tmp_path: Path
) -> None:
    machine.others[GPU] = {1: GIB}
    assert parking.attempt(tmp_path, driver, machine).level == "ok"
    (parked,) = [it for it in machine.place.iterdir() if it.name.isdecimal()]
    assert parked.read_text().split()[2] == OTHER
    machine.others[OTHER] = {1: GIB}
    found = parking.attempt(tmp_path, driver, machine)
    assert (found.level, "every whole GPU has processes" in found.text) == ("degraded", True)


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"lock": "600"}, "to host memory: it ended up running: "
                          "cuCheckpointProcessLock: CUDA_ERROR_NOT_READY (600)"),
        ({"checkpoint": "801"}, "to host memory: it ended up running: "
                                "cuCheckpointProcessCheckpoint: CUDA_ERROR_NOT_SUPPORTED (801)"),
        ({"checkpoint": "failed"}, "ended up lost: cuCheckpointProcessCheckpoint: "
                                   "CUDA_ERROR_UNKNOWN (999)"),
        ({"restore": "breaks"}, "back to the GPU: it ended up lost: "
                                "cuCheckpointProcessRestore: CUDA_ERROR_OUT_OF_MEMORY (2)"),
        ({"restore": "dies"}, "back to the GPU: it ended up"),
        ({"unlock": "hang"}, "ended up lost: unlock: no answer within 0.5 s"),
        ({"contents": "1"}, "different contents"),
    ],
)  # fmt: skip
def test_each_driver_fault_is_reported_and_disables_parking(
    machine: ScriptedMachine, tmp_path: Path, faults: dict[str, str], message: str
) -> None:
    machine.faults(**faults)
    with LibcudaDriver({**libcuda_driver.TIMES_S, "unlock": 0.5}) as driver:
        found = parking.attempt(tmp_path, driver, machine)
    assert message in found.text
    assert (found.level, trial.recorded(tmp_path)) == ("degraded", None)


def test_doctor_names_each_closed_gate_with_number_and_limit() -> None:
    facts = replace(GOOD, architecture="riscv64", driver="565.57.01", available=GIB, canary=None)
    text = parking.finding(facts, None).text
    assert "architecture: riscv64 (only x86_64)" in text
    assert "driver: 565.57.01 (570 or newer)" in text
    assert "host memory: 0 bytes for images: 1.0 GiB available, 25.6 GiB of it kept free" in text
    assert "benchpool doctor --try-parking" in text


def test_driver_with_known_defect_is_not_used() -> None:
    for driver in HARMFUL:
        shut = closed(gates_of_machine(replace(GOOD, driver=driver, canary=driver)))
        assert [gate.name for gate in shut] == ["driver"]
        assert "#5" in shut[0].text
    assert closed(gates_of_machine(GOOD)) == []


@pytest.mark.parametrize(
    ("kernel", "gate"),
    [
        (replace(KERNEL, gpus=2), "one GPU"),
        (replace(KERNEL, slice=True), "no slice"),
        (replace(KERNEL, processes=2), "one process"),
        (replace(KERNEL, processes=None), "one process"),
        (replace(KERNEL, nccl=True), "no NCCL"),
        (replace(KERNEL, managed=1), "no shared memory"),
        (replace(KERNEL, managed=None), "no shared memory"),
        (replace(KERNEL, used=200 * GIB), "room for its image"),
        (replace(KERNEL, used=None), "room for its image"),
    ],
)
def test_kernel_is_parked_only_if_every_gate_passes(kernel: KernelFacts, gate: str) -> None:
    assert closed(gates_of_kernel(KERNEL, GOOD)) == []
    assert [it.name for it in closed(gates_of_kernel(kernel, GOOD))] == [gate]


def test_host_memory_is_counted_once_and_limited_by_cgroup() -> None:
    left = host_memory_left(GOOD)
    assert left is not None
    assert host_memory_left(GOOD, counted=left) == 0
    assert host_memory_left(replace(GOOD, cgroup_left=3 * GIB), counted=GIB) == 2 * GIB
    shut = closed(gates_of_kernel(KERNEL, GOOD, counted=left - 10 * GIB))
    assert [gate.name for gate in shut] == ["room for its image"]
    assert "44.0 GiB of host memory needed, 10.0 GiB left" in shut[0].text


def test_tightest_ancestor_cgroup_limit_applies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    proc, tree = tmp_path / "proc", tmp_path / "tree"
    for folder, bound, used in (("a", "3000", "1000"), ("a/b", "max", "900")):
        place = tree / folder
        place.mkdir(parents=True)
        place.joinpath("memory.max").write_text(f"{bound}\n")
        place.joinpath("memory.current").write_text(f"{used}\n")
    proc.joinpath("7").mkdir(parents=True)
    proc.joinpath("7/cgroup").write_text("0::/a/b\n")
    assert machine_facts.cgroup_left(7, proc, tree) == 2000
    assert machine_facts.cgroup_left(8, proc, tree) is None


def test_trial_runs_only_on_request(
    machine: ScriptedMachine,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "NvmlFacts", lambda: machine)
    monkeypatch.setattr(parking, "NvmlFacts", lambda: machine)
    named = {it.name: it for it in findings.look(StateFolder(tmp_path), {})}
    assert "trial: not tried yet on this machine" in named["Parking"].text
    assert not list(machine.place.iterdir())
    assert doctor.run(DoctorOptions(tmp_path, json=True, try_parking=True)) == 0
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding["name"] == "Parking"
    named = {it.name: it for it in findings.look(StateFolder(tmp_path), {})}
    assert "A trial succeeded" in named["Parking"].text
    machine.faults(lock="801")
    assert doctor.run(DoctorOptions(tmp_path, try_parking=True)) == 1
