"""A pool that parks one bench of a scripted machine; all parts but the driver are real."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from benchpool_scheduler.contract import ParkedBench, ParkStep
from benchpool_scheduler.hub import HubServer, StaticDirectory
from benchpool_scheduler.runtime import Device
from benchpool_scheduler.runtime.local.parking import machine_facts, trial
from benchpool_scheduler.runtime.local.parking.libcuda_driver import LibcudaDriver
from benchpool_scheduler.runtime.local.parking.parker import LocalParker
from benchpool_scheduler.runtime.local.parking.trial import Trial
from benchpool_scheduler.service import Pool
from benchpool_support.bench_lines import line
from benchpool_support.pools import HUB, SUSAN, make_pool, opened, story
from benchpool_support.scripted import ScriptedRuntime
from benchpool_support.scripted_cuda import GPU, OTHER, ScriptedMachine
from benchpool_support.waiting import until_async

GIB = 2**30
LENDING = """
version: 1
build: {users: {susan: 1, jemma: 1}, reserve: 2, oversubscribe: true, lend_idle: true,
        parking: true}
projects: [{name: p, quota: 1, members: [joe]}]
policy: {grace_s: 20}
"""


@dataclass
class ParkingPool:
    """Machine of two GPUs, one of them leased to user susan, with a kernel on it."""

    state: Path
    machine: ScriptedMachine
    kernel: subprocess.Popen[bytes]
    runtime: ScriptedRuntime
    configuration: str = LENDING
    on_bench: frozenset[int] = frozenset()
    directory: StaticDirectory = field(
        default_factory=lambda: StaticDirectory((), (HubServer("susan", ""),))
    )

    @asynccontextmanager
    async def pool(self) -> AsyncIterator[Pool]:
        """Open a pool like a starting scheduler."""
        own = {self.kernel.pid, *self.on_bench}
        parker = LocalParker(
            self.state, self.machine, LibcudaDriver(), on_bench=lambda pid, _: pid in own
        )
        made = make_pool(
            self.state,
            configuration=story(self.configuration),
            runtime=self.runtime,
            directory=self.directory,
            parker=parker,
        )
        async with opened(made) as pool:
            yield pool

    async def parked(self, pool: Pool) -> str:
        """Lease a bench to user susan, park it, and return its ID."""
        lease = (await pool.benches.reserve(HUB, line().lease)).id
        await pool.reservations.parking.park(SUSAN, lease)
        await stands(pool, lease, ParkStep.PARKED)
        return lease


@contextmanager
def parking_pool(
    state: Path,
    machine: ScriptedMachine,
    patch: pytest.MonkeyPatch,
    runtime: type[ScriptedRuntime] = ScriptedRuntime,
    configuration: str = LENDING,
) -> Iterator[ParkingPool]:
    """Yield a pool with a kernel of 3 GiB on a GPU, on a machine where a trial has succeeded."""
    memory = {"MemTotal": 256 * GIB, "MemAvailable": 200 * GIB}
    patch.setattr(machine_facts, "memory_of_machine", lambda: memory)
    patch.setattr(machine_facts, "cgroup_left", lambda _: None)
    patch.setattr("platform.machine", lambda: "x86_64")
    done = Trial("580.95.05", at=0.0, park_s=1.0, back_s=1.0, used=0, shared=0)
    state.joinpath(trial.FILE).write_bytes(msgspec.json.encode(done))
    gpus = [
        Device(uuid, at, "A100", "localhost", 81920, False) for at, uuid in enumerate((GPU, OTHER))
    ]
    with subprocess.Popen(["sleep", "600"]) as kernel:
        machine.put(kernel.pid, "running", 3 * GIB)
        yield ParkingPool(state, machine, kernel, runtime(gpus), configuration)
        kernel.kill()


async def stands(pool: Pool, lease: str, *steps: ParkStep | None) -> ParkedBench | None:
    """Wait until a bench has reached one of these steps; None: the bench is not parked."""
    return await until_async(
        lambda: {it.lease: it for it in pool.reservations.parking.benches(HUB)}.get(lease),
        f"the bench stands at one of {steps}",
        holds=lambda found: (None if found is None else found.step) in steps,
    )
