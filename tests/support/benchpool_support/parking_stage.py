"""A pool that parks, a notebook server and kernels, all real but the driver's library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from benchpool_scheduler.contract import ParkStep
from benchpool_scheduler.runtime import Device
from benchpool_scheduler.runtime.local.parking import machine_facts, trial
from benchpool_scheduler.runtime.local.parking.parker import LocalParker
from benchpool_scheduler.runtime.local.parking.trial import Trial
from benchpool_scheduler.service import Caller
from benchpool_support import live_kernels, scripted_cuda
from benchpool_support.bench_lines import line
from benchpool_support.notebook_server import NotebookServer, notebook_server
from benchpool_support.pools import HUB
from benchpool_support.scripted import ScriptedRuntime
from benchpool_support.scripted_cuda import GPU, ScriptedMachine
from benchpool_support.serving import Served, served
from benchpool_support.waiting import until_async

SECRET = "servers-own-token-0123456789"
GIB = 2**30
CONFIGURATION = """
version: 1
build: {users: {susan: 1}, lend_idle: true, parking: true}
projects: [{name: p, quota: 1, members: [joe]}]
policy: {grace_s: 20}
"""
FILL = """
import ctypes
cuda, memory, data = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), b"weights!" * 8
cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64))
cuda.cuMemcpyHtoD_v2(memory, data, ctypes.c_size_t(64))
"""
READ = """
found = ctypes.create_string_buffer(64)
cuda.cuMemcpyDtoH_v2(found, memory, ctypes.c_size_t(64))
print("the same" if found.raw == data else "other")
"""


@dataclass
class ParkingStage:
    """Pool with one GPU for user susan's bench, her notebook server, and a kernel with a model."""

    pool: Served
    server: NotebookServer
    machine: ScriptedMachine
    runtime: ScriptedRuntime
    runtime_folder: Path
    kernel: str = ""
    lease: str = ""

    async def begin(self) -> None:
        """Start the kernel, lease the GPU to the bench, and load data onto it."""
        self.lease = self.pool.do(self.pool.pool.benches.reserve(HUB, line().lease)).id
        self.kernel = live_kernels.start(self.server.page)
        await live_kernels.run(self.server.page, self.kernel, FILL)

    async def park(self) -> None:
        """Park the bench and wait until the notebook server knows it."""
        self.pool.client("susan").park_bench(self.lease)
        await self.stands(ParkStep.PARKED)

    async def stands(self, step: ParkStep | None) -> None:
        """Wait until the bench has reached this step; None: the bench is not parked."""
        await until_async(lambda: self.step() is step)

    def step(self) -> ParkStep | None:
        found = self.pool.client("susan").parked_benches()
        return found[0].step if found else None

    def end(self) -> None:
        """Stop the bench and its kernel."""
        self.server.page.delete(f"api/kernels/{self.kernel}")
        self.pool.do(self.pool.pool.benches.release(HUB, self.lease))


@contextmanager
def stage(folders: Callable[[str], Path]) -> Iterator[ParkingStage]:
    """Run a pool of one GPU with parking, and user susan's notebook server on it."""
    library = scripted_cuda.compiled(folders("cuda"))
    if library is None:
        pytest.skip("no C compiler (gcc or cc): the driver's library cannot be played")
    place, state = folders("driver"), folders("state")
    folder = folders("server")
    own = scripted_cuda.environment(place, library)
    memory = {"MemTotal": 256 * GIB, "MemAvailable": 200 * GIB}
    done = Trial("580.95.05", at=0.0, park_s=1.0, back_s=1.0, used=0, shared=0)
    state.joinpath(trial.FILE).write_bytes(msgspec.json.encode(done))
    machine = ScriptedMachine(place, gpus=(GPU,))
    runtime = ScriptedRuntime([Device(GPU, 0, "A100", "localhost", 81920, simulated=False)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_facts, "memory_of_machine", lambda: memory)
        patch.setattr(machine_facts, "cgroup_left", lambda _: None)
        patch.setattr("platform.machine", lambda: "x86_64")
        for name, value in own.items():
            patch.setenv(name, value)
        parker = LocalParker(state, machine)
        with served(
            state, configuration=CONFIGURATION, runtime=runtime, parker=parker, keep_jobs=True
        ) as pool:
            pool.identity.people = {**pool.identity.people, SECRET: Caller("susan")}
            environ = {
                "BENCHPOOL_URL": pool.url,
                "JUPYTERHUB_API_TOKEN": SECRET,
                "JUPYTERHUB_USER": "susan",
                "CUDA_VISIBLE_DEVICES": GPU,
                **own,
            }
            with notebook_server(folder, environ) as server:
                yield ParkingStage(pool, server, machine, runtime, folder / "runtime")
