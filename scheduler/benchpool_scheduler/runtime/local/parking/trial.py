"""The trial: a small CUDA process is parked and restored before any kernel is parked.

It uses the same state table and the same calls as kernels. At its end it is parked again and then
killed. A process whose CUDA state is in host memory can be killed safely. For a restored process
this is not documented (NVIDIA/cuda-checkpoint, issue 53).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from benchpool_scheduler.core.benches.parking import ParkEvent, ParkState, next_state
from benchpool_scheduler.core.benches.parking_gates import MachineFacts, closed, gates_of_kernel
from benchpool_scheduler.runtime.local.parking import children, machine_facts
from benchpool_scheduler.runtime.local.parking.driver import CheckpointDriver
from benchpool_scheduler.runtime.local.parking.gpu_facts import GpuFacts
from benchpool_scheduler.runtime.local.parking.steps import Hands, is_there, until_rest
from benchpool_scheduler.runtime.parker import Parkable
from benchpool_scheduler.worker import process_identity

MODULE = "benchpool_scheduler.runtime.local.parking.canary_process"
READY_S = 60.0
FILE = "parking-trial.json"
"""File in the state folder with the last successful trial."""


class TrialFailed(Exception):
    """The trial failed; the message gives the step at which it stopped."""


class Trial(Struct, frozen=True):
    """Result of a successful trial.

    Attributes:
        driver: Driver version. ``at``: start time, in epoch seconds.
        park_s: Seconds until the GPU was free. ``back_s``: seconds until the process was restored.
        used: Bytes of GPU memory in use before. ``shared``: bytes of memory shared by CPU and GPU,
            which every CUDA process has here.
    """

    driver: str
    at: float
    park_s: float
    back_s: float
    used: int
    shared: int


def recorded(state: Path) -> Trial | None:
    """Return the last successful trial of this machine, or None if none can be read."""
    try:
        return msgspec.json.decode((state / FILE).read_bytes(), type=Trial)
    except (OSError, msgspec.DecodeError):
        return None


def free_gpu(gpus: GpuFacts) -> str | None:
    """Return a whole GPU without processes, or None."""
    for gpu in gpus.whole_gpus():
        there = gpus.processes(gpu)
        if there is not None and not there:
            return gpu
    return None


def run(
    driver: CheckpointDriver,
    gpus: GpuFacts,
    machine: MachineFacts,
    clock: Callable[[], float] = time.time,
    pause: Callable[[float], None] = time.sleep,
) -> Trial:
    """Park a small process on a free GPU and restore it. Raises TrialFailed."""
    version, gpu = gpus.driver(), free_gpu(gpus)
    if version is None:
        raise TrialFailed("no NVIDIA driver answers on this machine")
    if gpu is None:
        raise TrialFailed("every whole GPU has processes now: try again when one is free")
    failures: list[str] = []
    hands = Hands(driver, gpus, lambda _: True, is_there, lambda *_: False, pause, failures.append)
    canary = children.start(MODULE, {**os.environ, "CUDA_VISIBLE_DEVICES": gpu})
    try:
        if children.answer(canary, READY_S) != b"ready":
            raise TrialFailed(f"the test process could not start on {gpu}")
        facts = machine_facts.of_kernel(gpus, [gpu], canary.pid)
        shared = facts.managed or 0
        if shut := closed(gates_of_kernel(facts, machine, managed_limit=shared)):
            raise TrialFailed("; ".join(f"{gate.name}: {gate.text}" for gate in shut))
        process = process_identity.identity(canary.pid) or ""
        one = Parkable(canary.pid, process, gpu, facts.used or 0)
        began = clock()
        _reach(ParkState.PARKED, ParkEvent.PARK, one, hands, failures)
        parked = clock()
        _reach(ParkState.RUNNING, ParkEvent.BACK, one, hands, failures)
        back = clock()
        children.ask(canary, b"?")
        if children.answer(canary, READY_S) != b"intact":
            raise TrialFailed("it was restored with different contents of its GPU memory")
        _reach(ParkState.PARKED, ParkEvent.PARK, one, hands, failures)
    finally:
        children.abandon(canary)
    return Trial(version, began, parked - began, back - parked, one.used, shared)


def _reach(
    wanted: ParkState, event: ParkEvent, one: Parkable, hands: Hands, failures: Sequence[str]
) -> None:
    begins = ParkState.RUNNING if wanted is ParkState.PARKED else ParkState.PARKED
    reached = until_rest(next_state(begins, event), one, hands)
    if reached is not wanted:
        way = "to host memory" if wanted is ParkState.PARKED else "back to the GPU"
        reason = f": {failures[-1]}" if failures else ""
        raise TrialFailed(f"the test process did not get {way}: it ended up {reached}{reason}")
