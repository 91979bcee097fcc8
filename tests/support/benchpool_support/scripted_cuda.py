"""A driver library without a GPU, loaded like the real one, and a matching NVML.

The driver's state of a process is a file, see ``scripted_cuda.c``; faults are in another file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchpool_scheduler.runtime.local.parking.gpu_facts import GpuMemory
from benchpool_scheduler.worker import process_identity

SOURCE = Path(__file__).with_name("scripted_cuda.c")
GPU = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
OTHER = "GPU-f0010203-0405-0607-0809-0a0b0c0d0e0f"
STATES = ("running", "locked", "checkpointed", "failed")
HOLDING = ("running", "locked", "failed")


def compiled(folder: Path) -> Path | None:
    """Return the folder of a ``libcuda.so.1``, or None if there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "libcuda.so.1"
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-o", str(library), str(SOURCE)]
    subprocess.run(command, check=True)
    return folder


@dataclass
class ScriptedMachine:
    """GPUs of a machine in the form of NVML (``GpuFacts``), from the files of the library.

    Attributes:
        place: Folder of ``SCRIPTED_CUDA``.
        total: Bytes of each GPU.
        others: Bytes that foreign processes use on a GPU, by pid.
    """

    place: Path
    gpus: Sequence[str] = (GPU, OTHER)
    version: str | None = "580.95.05"
    total: int = 80 * 2**30
    others: dict[str, dict[int, int]] = field(default_factory=dict)

    def faults(self, **of_calls: str) -> None:
        """Let calls fail from now on: a fault's name in the C file, by the name of the call."""
        lines = [f"{call} {fault}\n" for call, fault in of_calls.items()]
        self.place.joinpath("faults").write_text("".join(lines))

    def put(self, pid: int, state: str, used: int, gpu: str = GPU) -> None:
        """Set the CUDA state of a process."""
        self.place.joinpath(str(pid)).write_text(f"{STATES.index(state)} {used} {gpu}\n")

    def state(self, pid: int) -> str:
        """Return the state of a process."""
        return STATES[int(self.place.joinpath(str(pid)).read_text().split()[0])]

    def driver(self) -> str | None:
        """See ``GpuFacts``."""
        return self.version

    def whole_gpus(self) -> Sequence[str]:
        """See ``GpuFacts``."""
        return self.gpus

    def memory(self, gpu: str) -> GpuMemory | None:
        """See ``GpuFacts``."""
        return GpuMemory(self.total, sum(self._on(gpu).values()))

    def processes(self, gpu: str) -> Sequence[int] | None:
        """See ``GpuFacts``."""
        return sorted(self._on(gpu))

    def _on(self, gpu: str) -> Mapping[int, int]:
        found = dict(self.others.get(gpu, {}))
        for file in self.place.iterdir():
            if not file.name.isdecimal() or process_identity.identity(int(file.name)) is None:
                continue
            state, used, where = file.read_text().split()
            if where == gpu and STATES[int(state)] in HOLDING:
                found[int(file.name)] = int(used)
        return found


def environment(place: Path, library: Path) -> Mapping[str, str]:
    """Return the environment variables by which a process loads the library."""
    before = os.environ.get("LD_LIBRARY_PATH", "")
    path = f"{library}:{before}" if before else str(library)
    return {"SCRIPTED_CUDA": str(place), "LD_LIBRARY_PATH": path}
