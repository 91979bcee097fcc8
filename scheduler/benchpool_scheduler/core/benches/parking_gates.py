"""Conditions for parking a kernel, each with its number and its limit.

A gate is closed if its facts cannot be read. The limits come from the documentation of
NVIDIA/cuda-checkpoint and from the faults reported there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from benchpool_scheduler.phrases import count, data_size

LEAST_DRIVER = 570
"""Oldest supported major version of the driver: NVML supports checkpoints, the lock has a
timeout.
"""

HARMFUL: Mapping[str, str] = MappingProxyType(
    {
        "595.71.05": "the end of a restored process hung the whole machine (cuda-checkpoint #53)",
        "610.57.04": "locking a process with many threads killed it (cuda-checkpoint #58)",
    }
)
"""Driver versions with reported faults, and the fault."""

TRIAL = "trial"
"""Name of the gate that a successful trial opens."""

ARCHITECTURES = ("x86_64",)
IMAGE_MARGIN = 0.1
IMAGE_LEAST_MARGIN = 512 * 2**20
"""Margin of an image above the GPU memory in use: this share, but at least this many bytes."""

KEPT_FREE = 0.1
KEPT_FREE_LEAST = 4 * 2**30
"""Memory of the machine that parking keeps free: this share, but at least this many bytes."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition: whether it holds, and a sentence with the number and the limit."""

    name: str
    open: bool
    text: str


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """Facts of a machine. None means that a value cannot be read.

    Attributes:
        architecture: Output of ``uname -m``.
        driver: Version of the NVIDIA driver.
        calls: The driver library has the checkpoint calls.
        refusal: Why the driver library lacks the calls.
        memory: Memory of the machine, in bytes.
        available: Memory that programs can still allocate, in bytes.
        cgroup_left: Bytes that our cgroup may still allocate. None means no limit.
        canary: Driver version with which a tiny process was parked and restored here.
    """

    architecture: str
    driver: str | None
    calls: bool
    refusal: str = ""
    memory: int | None = None
    available: int | None = None
    cgroup_left: int | None = None
    canary: str | None = None


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Facts of a kernel and its GPU. None means that a value cannot be read.

    Attributes:
        gpus: Number of GPUs that its bench holds.
        processes: Number of processes on its GPU.
        used: GPU memory in use on it, in bytes, including the driver's.
        managed: Memory shared by CPU and GPU (UVM) in its address space, in bytes.
        nccl: It has NCCL files open.
        slice: Its GPU is a MIG slice.
    """

    gpus: int
    processes: int | None
    used: int | None
    managed: int | None
    nccl: bool | None
    slice: bool


def image_size(used: int) -> int:
    """Return the host memory reserved for a kernel with ``used`` bytes on its GPU, in bytes.

    >>> image_size(80 * 2**30) // 2**30, image_size(2**30) // 2**20
    (88, 1536)
    """
    return used + max(int(used * IMAGE_MARGIN), IMAGE_LEAST_MARGIN)


def host_memory_left(machine: MachineFacts, counted: int = 0) -> int | None:
    """Return the memory that images may still take, in bytes, or None if it cannot be read.

    Args:
        counted: Bytes reserved for images that are being made and not yet visible in ``machine``.

    >>> facts = MachineFacts("x86_64", "580.95.05", True, "", 256 * 2**30, 200 * 2**30)
    >>> round(host_memory_left(facts) / 2**30, 1)
    174.4
    """
    if machine.memory is None or machine.available is None:
        return None
    kept = max(int(machine.memory * KEPT_FREE), KEPT_FREE_LEAST)
    left = machine.available - kept
    if machine.cgroup_left is not None:
        left = min(left, machine.cgroup_left)
    return max(left - counted, 0)


def gates_of_machine(machine: MachineFacts) -> Sequence[Gate]:
    """Return the conditions that a machine must meet before any kernel is parked on it."""
    return (_architecture(machine), _driver(machine), _calls(machine), _host(machine),
            _canary(machine))  # fmt: skip


def gates_of_kernel(
    kernel: KernelFacts, machine: MachineFacts, counted: int = 0, managed_limit: int | None = 0
) -> Sequence[Gate]:
    """Return the conditions that a kernel must meet to be parked, besides those of its machine.

    Args:
        counted: As for ``host_memory_left``.
        managed_limit: Shared memory of a CUDA process that requested none, in bytes. None before a
            trial has measured it: the trial's own gate is closed then.
    """
    return (
        Gate("one GPU", kernel.gpus == 1, f"its bench has {count(kernel.gpus, 'GPU')} (must be 1)"),
        Gate("no slice", not kernel.slice, "its GPU is a MIG slice (no MIG)"
             if kernel.slice else "its GPU is a whole GPU"),
        _processes(kernel),
        _nccl(kernel),
        _managed(kernel, managed_limit),
        _image(kernel, machine, counted),
    )  # fmt: skip


def closed(gates: Sequence[Gate]) -> Sequence[Gate]:
    """Return the gates that are closed."""
    return [gate for gate in gates if not gate.open]


def major_of(driver: str | None) -> int | None:
    """Return the major version of a driver, or None if it has none.

    >>> major_of("580.95.05"), major_of("none"), major_of(None)
    (580, None, None)
    """
    first = (driver or "").partition(".")[0]
    return int(first) if first.isdecimal() else None


def _architecture(machine: MachineFacts) -> Gate:
    known = ", ".join(ARCHITECTURES)
    here = machine.architecture
    return Gate("architecture", here in ARCHITECTURES, f"{here or 'unknown'} (only {known})")


def _driver(machine: MachineFacts) -> Gate:
    driver, major = machine.driver, major_of(machine.driver)
    if driver is None or major is None:
        return Gate("driver", False, f"no NVIDIA driver responds ({LEAST_DRIVER} or newer)")
    if driver in HARMFUL:
        return Gate("driver", False, f"{driver}: {HARMFUL[driver]}; install another version")
    return Gate("driver", major >= LEAST_DRIVER, f"{driver} ({LEAST_DRIVER} or newer)")


def _calls(machine: MachineFacts) -> Gate:
    if machine.calls:
        return Gate("driver calls", True, "libcuda.so.1 has all checkpoint functions")
    return Gate("driver calls", False, machine.refusal or "libcuda.so.1 was not checked")


def _host(machine: MachineFacts) -> Gate:
    left = host_memory_left(machine)
    if left is None:
        return Gate("host memory", False, "the amount of free memory cannot be read")
    kept = max(int((machine.memory or 0) * KEPT_FREE), KEPT_FREE_LEAST)
    bound = "" if machine.cgroup_left is None else f", {data_size(machine.cgroup_left)} left here"
    text = (
        f"{data_size(left)} for images: {data_size(machine.available or 0)} available{bound}, "
        f"{data_size(kept)} of it kept free"
    )
    return Gate("host memory", left > IMAGE_LEAST_MARGIN, text)


def _canary(machine: MachineFacts) -> Gate:
    if machine.canary is None:
        return Gate(
            TRIAL,
            False,
            "not tried yet on this machine (benchpool doctor --try-parking)",
        )
    if machine.canary != machine.driver:
        return Gate(TRIAL, False, f"tried with driver {machine.canary}, not with this driver")
    return Gate(TRIAL, True, "a small process was parked and restored with this driver")


def _processes(kernel: KernelFacts) -> Gate:
    if kernel.processes is None:
        return Gate("one process", False, "NVML does not list the processes on its GPU")
    text = f"number of processes on its GPU: {kernel.processes} (must be 1)"
    return Gate("one process", kernel.processes == 1, text)


def _nccl(kernel: KernelFacts) -> Gate:
    if kernel.nccl is None:
        return Gate("no NCCL", False, "its files cannot be read")
    return Gate("no NCCL", not kernel.nccl, "it has NCCL memory open (none)" if kernel.nccl
                else "it has no NCCL memory open")  # fmt: skip


def _managed(kernel: KernelFacts, limit: int | None) -> Gate:
    if limit is None:
        return Gate("no shared memory", True, "a trial measures the usual amount per process")
    if kernel.managed is None:
        return Gate("no shared memory", False, "its memory map cannot be read")
    text = (
        f"{data_size(kernel.managed)} of memory shared by CPU and GPU mapped (at most "
        f"{data_size(limit)}, the amount of a process that requested none)"
    )
    return Gate("no shared memory", kernel.managed <= limit, text)


def _image(kernel: KernelFacts, machine: MachineFacts, counted: int) -> Gate:
    left = host_memory_left(machine, counted)
    if kernel.used is None or left is None:
        return Gate("room for its image", False, "the memory that it needs cannot be read")
    need = image_size(kernel.used)
    text = f"{data_size(need)} of host memory needed, {data_size(left)} left for images"
    return Gate("room for its image", need <= left, text)
