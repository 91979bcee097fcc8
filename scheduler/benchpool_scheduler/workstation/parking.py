"""Check and test of parking idle kernels on this machine, for ``benchpool doctor``."""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchpool_scheduler.core.benches.parking_gates import (
    TRIAL,
    MachineFacts,
    closed,
    gates_of_machine,
)
from benchpool_scheduler.runtime.local.parking import machine_facts, trial
from benchpool_scheduler.runtime.local.parking.driver import CheckpointDriver
from benchpool_scheduler.runtime.local.parking.gpu_facts import GpuFacts, NvmlFacts
from benchpool_scheduler.runtime.local.parking.libcuda_driver import LibcudaDriver
from benchpool_scheduler.runtime.local.parking.trial import Trial, TrialFailed
from benchpool_scheduler.store import whole_files
from benchpool_scheduler.workstation.finding import Finding

REMEDY = "Parking stays off on this machine. Nothing else is affected."


def look(state: Path) -> Finding:
    """Return which requirements of parking this machine meets; nothing is changed."""
    done = trial.recorded(state)
    with LibcudaDriver() as driver:
        return finding(_facts(driver, NvmlFacts(), done), done)


def finding(facts: MachineFacts, done: Trial | None) -> Finding:
    """Return the finding for a machine's facts; a machine without parking is not degraded."""
    gates = gates_of_machine(facts)
    shut = closed(gates)
    details = "; ".join(f"{gate.name}: {gate.text}" for gate in shut or gates)
    if shut:
        return Finding("Parking", "ok", f"Idle kernels cannot be parked here: {details}.")
    times = f"{done.park_s:.1f} s to host memory, {done.back_s:.1f} s back" if done else ""
    return Finding("Parking", "ok", f"A trial succeeded ({times}); experimental. {details}.")


def attempt(state: Path, driver: CheckpointDriver, gpus: GpuFacts) -> Finding:
    """Run the test, store its result, and return the finding."""
    facts = _facts(driver, gpus, None)
    shut = [gate for gate in closed(gates_of_machine(facts)) if gate.name != TRIAL]
    if shut:
        details = "; ".join(f"{gate.name}: {gate.text}" for gate in shut)
        return Finding("Parking", "degraded", f"Not tried: {details}.", REMEDY)
    try:
        done = trial.run(driver, gpus, facts)
        state.mkdir(parents=True, exist_ok=True)
        whole_files.write(state / trial.FILE, msgspec.json.encode(done))
    except TrialFailed as failed:
        return Finding("Parking", "degraded", f"The trial failed: {failed}.", REMEDY)
    except OSError as error:
        text = (
            f"The trial succeeded, but its result cannot be stored in {state} ({error.strerror})."
        )
        return Finding("Parking", "degraded", text, "Make the folder writable and try again.")
    return finding(_facts(driver, gpus, done), done)


def _facts(driver: CheckpointDriver, gpus: GpuFacts, done: Trial | None) -> MachineFacts:
    return machine_facts.of_machine(driver, gpus, None if done is None else done.driver)
