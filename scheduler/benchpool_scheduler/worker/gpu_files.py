"""Device files that a process with some GPUs must not open; only ``look`` reads the machine.

A whole GPU is ``/dev/nvidiaN``. A MIG slice is that file too, and two capabilities, each a device
of its own below ``/dev/nvidia-caps``: one for its GPU instance, and one for the compute instance in
it. The driver lists their numbers in ``nvidia-caps/mig-minors``. The list includes instances that
do not exist yet, so that an instance created later is denied as well.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Numbers = tuple[int, int]
"""Major and minor number of a character device."""

CAPABILITIES = "nvidia-caps"
_GPU = re.compile(r"nvidia(\d+)")
_OF_GPU = re.compile(r"gpu(\d+)/")


@dataclass(frozen=True, slots=True)
class MachineFiles:
    """The GPUs' device files of a machine.

    Attributes:
        gpus: Files of whole GPUs, by the number N of ``/dev/nvidiaN``.
        capabilities: Files of MIG slices, by the driver's names such as ``gpu0/gi1/ci0/access``.
    """

    gpus: Mapping[int, Numbers] = field(default_factory=dict)
    capabilities: Mapping[str, Numbers] = field(default_factory=dict)

    def all(self) -> frozenset[Numbers]:
        """Return the numbers of every file; a process without GPUs must open none of them."""
        return frozenset(self.gpus.values()) | frozenset(self.capabilities.values())


@dataclass(frozen=True, slots=True)
class Part:
    """The GPU or MIG slice with a UUID.

    Attributes:
        gpu: The number N of ``/dev/nvidiaN``. ``slice``: it is a MIG slice of that GPU.
        instances: Numbers of a slice's GPU instance and compute instance, or None if unknown.
    """

    gpu: int
    slice: bool = False
    instances: tuple[int, int] | None = None

    def capabilities(self) -> tuple[str, ...] | None:
        """Return the names of the capabilities that it needs, or None if unknown.

        >>> Part(0, slice=True, instances=(7, 0)).capabilities()
        ('gpu0/gi7/access', 'gpu0/gi7/ci0/access')
        >>> Part(0).capabilities()
        ()
        """
        if not self.slice:
            return ()
        if self.instances is None:
            return None
        instance, compute = self.instances
        instance_of_gpu = f"gpu{self.gpu}/gi{instance}"
        return f"{instance_of_gpu}/access", f"{instance_of_gpu}/ci{compute}/access"


@dataclass(frozen=True, slots=True)
class GpuFiles:
    """The device files of a machine, and the GPU of each UUID."""

    machine: MachineFiles = field(default_factory=MachineFiles)
    parts: Mapping[str, Part] = field(default_factory=dict)

    def denied(self, given: Sequence[str]) -> list[Numbers]:
        """Return the files that a process with these GPUs must not open: those of all other GPUs.

        Returns nothing if the file of one of its own GPUs is unknown, since it could be any file.
        Slices are not isolated from each other if the capabilities of one of its own slices are
        unknown.

        >>> files = MachineFiles({0: (195, 0), 1: (195, 1)})
        >>> GpuFiles(files, {"GPU-a": Part(0), "GPU-b": Part(1)}).denied(["GPU-a"])
        [(195, 1)]
        """
        own = [self.parts.get(uuid) for uuid in given]
        parts = [part for part in own if part is not None and part.gpu in self.machine.gpus]
        if len(parts) < len(own):
            return []
        gpus = set(self.machine.gpus.values()) - {self.machine.gpus[part.gpu] for part in parts}
        return sorted(gpus | self._denied_capabilities(parts))

    def _denied_capabilities(self, parts: Sequence[Part]) -> set[Numbers]:
        there, needed = self.machine.capabilities, set()
        for part in parts:
            names = part.capabilities()
            if names is None or not there.keys() >= set(names):
                return set()
            needed |= {there[name] for name in names}
        return set(there.values()) - needed


def capability_files(minors: str, devices: str, gpus: Mapping[int, Numbers]) -> dict[str, Numbers]:
    """Return the capabilities of a machine's GPUs from the driver's list and the kernel's.

    Capabilities that belong to no single GPU, such as the right to divide GPUs, are included.

    Args:
        minors: The text of ``/proc/driver/nvidia-caps/mig-minors``.
        devices: The text of ``/proc/devices``, which contains the major number.

    >>> text = "config 1\\ngpu0/gi1/access 12\\ngpu1/gi1/access 147\\n"
    >>> capability_files(text, "Character devices:\\n507 nvidia-caps\\n", {0: (195, 0)})
    {'config': (507, 1), 'gpu0/gi1/access': (507, 12)}
    """
    majors = [words[0] for words in _lines(devices) if words[1:] == [CAPABILITIES]]
    found: dict[str, Numbers] = {}
    for words in _lines(minors) if majors else ():
        if len(words) != 2 or not words[1].isdecimal():
            continue
        gpu = _OF_GPU.match(words[0])
        if gpu is None or int(gpu[1]) in gpus:
            found[words[0]] = int(majors[0]), int(words[1])
    return found


def look(dev: str = "/dev", proc: str = "/proc") -> MachineFiles:
    """Return the files of this machine; nothing without a driver."""
    gpus: dict[int, Numbers] = {}
    try:
        names = os.listdir(dev)
    except OSError:
        names = []
    for name in names:
        numbered = _GPU.fullmatch(name)
        numbers = numbers_of(os.path.join(dev, name)) if numbered else None
        if numbered and numbers is not None:
            gpus[int(numbered[1])] = numbers
    minors = _text(os.path.join(proc, "driver", CAPABILITIES, "mig-minors"))
    devices = _text(os.path.join(proc, "devices"))
    return MachineFiles(gpus, capability_files(minors, devices, gpus))


def numbers_of(path: str) -> Numbers | None:
    """Return major and minor number of a character device, or None.

    >>> numbers_of("/dev/null"), numbers_of("/dev/nothing")
    ((1, 3), None)
    """
    try:
        facts = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISCHR(facts.st_mode):
        return None
    return os.major(facts.st_rdev), os.minor(facts.st_rdev)


def _lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
