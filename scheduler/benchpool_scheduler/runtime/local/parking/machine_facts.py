"""Facts about this machine and about a kernel's process, for the gates of parking."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from benchpool_scheduler.core.benches.parking_gates import KernelFacts, MachineFacts
from benchpool_scheduler.runtime.local.parking.driver import CallFailed, CheckpointDriver
from benchpool_scheduler.runtime.local.parking.gpu_facts import GpuFacts

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
SHARED_MEMORY = "/dev/nvidia-uvm"
"""Device of memory shared by CPU and GPU (UVM); every CUDA process maps a little of it."""

NCCL = "/dev/shm/nccl-"  # noqa: S108
_KIB = 1024


def of_machine(driver: CheckpointDriver, gpus: GpuFacts, canary: str | None) -> MachineFacts:
    """Return the facts about this machine.

    Args:
        canary: Driver version with which the trial succeeded here.
    """
    version = gpus.driver()
    refusal, calls = "", False
    if version is not None:
        try:
            calls = driver.version() > 0
        except CallFailed as failed:
            refusal = str(failed)
    memory = memory_of_machine()
    return MachineFacts(
        architecture=platform.machine(),
        driver=version,
        calls=calls,
        refusal=refusal,
        memory=memory.get("MemTotal"),
        available=memory.get("MemAvailable"),
        cgroup_left=cgroup_left("self"),
        canary=canary,
    )


def of_kernel(gpus: GpuFacts, held: list[str], pid: int) -> KernelFacts:
    """Return the facts about the process of a kernel whose bench holds these GPUs."""
    first = held[0] if held else ""
    processes, memory = gpus.processes(first), gpus.memory(first)
    return KernelFacts(
        gpus=len(held),
        processes=None if processes is None else len(processes),
        used=None if memory is None else memory.used,
        managed=shared_memory_of(pid),
        nccl=uses_nccl(pid),
        slice=first not in gpus.whole_gpus(),
    )


def shared_memory_of(pid: int) -> int | None:
    """Return the bytes of the driver's shared memory that a process maps, or None if unknown."""
    lines = _maps(pid)
    if lines is None:
        return None
    ranges = (line.split(maxsplit=1)[0].split("-") for line in lines if SHARED_MEMORY in line)
    return sum(int(end, 16) - int(start, 16) for start, end in ranges)


def uses_nccl(pid: int) -> bool | None:
    """Return whether a process shares memory of NCCL, or None if unknown."""
    lines = _maps(pid)
    return None if lines is None else any(NCCL in line for line in lines)


def cgroup_left(pid: int | str, proc: Path = PROC, tree: Path = CGROUPS) -> int | None:
    """Return the bytes that a process' cgroup may still allocate; None without a limit.

    The driver copies GPU memory into the memory of the process itself, so its own limit counts.
    """
    try:
        lines = proc.joinpath(str(pid), "cgroup").read_text().splitlines()
    except OSError:
        return None
    left: list[int] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = tree, ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            root, names = tree / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        place = root / path.lstrip("/")
        for folder in (place, *place.parents):
            bound, used = (_number(folder / name) for name in names)
            if bound is not None and used is not None and bound < 2**60:
                left.append(max(bound - used, 0))
            if folder == root:
                break
    return min(left, default=None)


def _number(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _maps(pid: int) -> list[str] | None:
    try:
        return PROC.joinpath(str(pid), "maps").read_text(errors="replace").splitlines()
    except OSError:
        return None


def memory_of_machine() -> dict[str, int]:
    """Return the machine's memory figures of the kernel in bytes, by name."""
    try:
        text = PROC.joinpath("meminfo").read_text()
    except OSError:
        return {}
    found = re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)
    return {name: int(number) * _KIB for name, number in found}
