"""Driver calls reach a library loaded like the real one, and each fault is reported."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.core.benches.parking import CudaState
from benchpool_scheduler.runtime.local.parking.driver import CallFailed, CallHung
from benchpool_scheduler.runtime.local.parking.libcuda import CudaError, Libcuda
from benchpool_scheduler.runtime.local.parking.libcuda_driver import TIMES_S, LibcudaDriver
from benchpool_support.scripted_cuda import GPU, OTHER, ScriptedMachine

GIB = 2**30


@pytest.fixture
def process(machine: ScriptedMachine) -> Iterator[subprocess.Popen[bytes]]:
    """Process that has 3 GiB on a GPU, as reported by the driver."""
    with subprocess.Popen(["sleep", "60"]) as process:
        machine.put(process.pid, "running", 3 * GIB)
        yield process
        process.kill()


def test_process_is_parked_and_restored_on_another_gpu(
    machine: ScriptedMachine, driver: LibcudaDriver, process: subprocess.Popen[bytes]
) -> None:
    pid = process.pid
    assert driver.version() == 13000
    assert driver.state(pid) is CudaState.RUNNING
    driver.lock(pid)
    assert (driver.state(pid), machine.processes(GPU)) == (CudaState.LOCKED, [pid])
    driver.checkpoint(pid)
    assert (driver.state(pid), machine.processes(GPU)) == (CudaState.CHECKPOINTED, [])
    driver.restore(pid, {GPU: OTHER})
    assert (driver.state(pid), machine.processes(OTHER)) == (CudaState.LOCKED, [pid])
    driver.unlock(pid)
    assert driver.state(pid) is CudaState.RUNNING


def test_refusal_has_number_and_name_of_driver_error(
    machine: ScriptedMachine, driver: LibcudaDriver, process: subprocess.Popen[bytes]
) -> None:
    with pytest.raises(CallFailed, match="CUDA_ERROR_ILLEGAL_STATE") as illegal:
        driver.checkpoint(process.pid)
    assert (illegal.value.call, illegal.value.code) == ("cuCheckpointProcessCheckpoint", 401)
    machine.faults(lock="600")
    with pytest.raises(CallFailed, match=r"Lock: CUDA_ERROR_NOT_READY \(600\)"):
        driver.lock(process.pid)


def test_hanging_call_times_out_and_next_call_works(
    machine: ScriptedMachine, process: subprocess.Popen[bytes]
) -> None:
    with LibcudaDriver({**TIMES_S, "lock": 0.2}) as driver:
        driver.version()
        machine.faults(lock="hang")
        with pytest.raises(CallHung, match=r"no answer within 0\.2 s"):
            driver.lock(process.pid)
        assert driver.state(process.pid) is CudaState.RUNNING


def test_missing_library_is_refusal() -> None:
    with pytest.raises(CudaError, match=r"libcuda-nowhere\.so\.1 cannot be loaded"):
        Libcuda("libcuda-nowhere.so.1")


def test_outdated_library_names_missing_functions(
    driver: LibcudaDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old"
    old.mkdir()
    tmp_path.joinpath("old.c").write_text("int cuInit(unsigned int it) { return it; }")
    built = ["gcc", "-shared", "-fPIC", "-o", str(old / "libcuda.so.1"), str(tmp_path / "old.c")]
    subprocess.run(built, check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(old))
    with pytest.raises(CallFailed, match=r"has no .*cuCheckpointProcessLock"):
        driver.version()


def test_crashed_helper_process_is_reported_and_replaced(
    machine: ScriptedMachine, driver: LibcudaDriver, process: subprocess.Popen[bytes]
) -> None:
    machine.faults(state="exits")
    with pytest.raises(CallFailed, match="has ended"):
        driver.state(process.pid)
    machine.faults()
    assert driver.state(process.pid) is CudaState.RUNNING
