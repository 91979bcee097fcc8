"""GPUs as a runtime finds them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DeviceState(StrEnum):
    """State of a GPU, apart from its use by benchpool."""

    USABLE = "usable"
    FOREIGN = "foreign"  # a process not started by benchpool uses it (R1)
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU of a node as found; ``note`` gives the reason if it is unusable.

    ``resource`` is its resource name in Kubernetes; MIG slices have resource names of their own.
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
