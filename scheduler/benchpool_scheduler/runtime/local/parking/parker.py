"""``Parker`` for the GPUs of this machine: one call of the driver at a time, in a thread."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from benchpool_scheduler.core.benches.parking import (
    CudaState,
    ParkEvent,
    ParkState,
    next_state,
    rebuilt,
)
from benchpool_scheduler.core.benches.parking_gates import (
    closed,
    gates_of_kernel,
    gates_of_machine,
)
from benchpool_scheduler.runtime.local.gpus import Ours, on_a_bench
from benchpool_scheduler.runtime.local.parking import machine_facts, trial
from benchpool_scheduler.runtime.local.parking.driver import CallFailed
from benchpool_scheduler.runtime.local.parking.gpu_facts import GpuFacts
from benchpool_scheduler.runtime.local.parking.libcuda_driver import LibcudaDriver
from benchpool_scheduler.runtime.local.parking.steps import Hands, carry_on, is_there
from benchpool_scheduler.runtime.parker import Parkable, ParkLook
from benchpool_scheduler.worker import process_identity

log = logging.getLogger(__name__)

T = TypeVar("T")


class LocalParker:
    """Parks processes of this machine.

    Args:
        state: The state folder, where the result of the trial is stored.
        on_bench: Returns whether a process (pid) uses a GPU (UUID) that a bench was given.
    """

    def __init__(
        self,
        state: Path,
        gpus: GpuFacts,
        driver: LibcudaDriver | None = None,
        on_bench: Ours = on_a_bench,
    ) -> None:
        self._state = state
        self._gpus = gpus
        self._driver = driver or LibcudaDriver()
        self._on_bench = on_bench
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="benchpool-parking")
        self._hands = Hands(
            self._driver, gpus, lambda _: False, is_there, on_bench, time.sleep, log.warning
        )

    async def look(self, gpus: Sequence[str], counted: int) -> ParkLook:
        """See ``Parker``."""
        return await self._run(lambda: self._look(list(gpus), counted))

    async def step(self, state: ParkState, one: Parkable) -> ParkState:
        """See ``Parker``."""
        return await self._run(lambda: self._step(state, one))

    async def found(self, one: Parkable, *, holds_gpu: bool) -> ParkState:
        """See ``Parker``."""
        return await self._run(lambda: rebuilt(self._driver_state(one), holds_gpu=holds_gpu))

    async def close(self) -> None:
        """See ``Parker``; does not wait for a call in progress."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._driver.close()

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _look(self, gpus: list[str], counted: int) -> ParkLook:
        tried = trial.recorded(self._state)
        canary = None if tried is None else tried.driver
        machine = machine_facts.of_machine(self._driver, self._gpus, canary)
        on = self._gpus.processes(gpus[0]) if len(gpus) == 1 else None
        pid = on[0] if on is not None and len(on) == 1 else 0
        kernel = machine_facts.of_kernel(self._gpus, gpus, pid)
        machine = replace(machine, cgroup_left=machine_facts.cgroup_left(pid))
        limit = None if tried is None else tried.shared
        gates = [*gates_of_machine(machine), *gates_of_kernel(kernel, machine, counted, limit)]
        shut = [f"{gate.name}: {gate.text}" for gate in closed(gates)]
        process = process_identity.identity(pid) if pid else None
        if not shut and (process is None or not self._on_bench(pid, gpus[0])):
            shut = ["one process: the process on its GPU does not belong to its bench"]
        if shut or process is None:
            return ParkLook(None, shut)
        return ParkLook(Parkable(pid, process, gpus[0], kernel.used or 0))

    def _step(self, state: ParkState, one: Parkable) -> ParkState:
        after = carry_on(state, one, self._hands)
        if after is ParkState.PARKED and self._bench_computes_on(one.gpu):
            return next_state(after, ParkEvent.BACK)
        return after

    def _bench_computes_on(self, gpu: str) -> bool:
        """Return whether a bench has another process on a GPU that it has lent."""
        return any(self._on_bench(pid, gpu) for pid in self._gpus.processes(gpu) or ())

    def _driver_state(self, one: Parkable) -> CudaState | None:
        if not is_there(one):
            return None
        try:
            return self._driver.state(one.pid)
        except CallFailed as failed:
            log.warning("%s", failed)
            return CudaState.CHANGING
