"""What the runtime finds of GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DeviceState(StrEnum):
    """What the runtime sees of a GPU, apart from our own use of it."""

    USABLE = "usable"
    FOREIGN = "foreign"  # a process that we did not start uses it (R1)
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU of a node as found; ``note`` says why it is not usable.

    ``resource`` is what Kubernetes counts it as; slices of a GPU have names of their own.
    """

    uuid: str
    index: int
    model: str
    node: str
    memory_mib: int | None
    simulated: bool
    state: DeviceState = DeviceState.USABLE
    note: str | None = None
    resource: str = "nvidia.com/gpu"
