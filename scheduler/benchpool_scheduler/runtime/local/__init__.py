"""Workers as processes of this machine."""

from .gpus import DeviceSource, NvmlSource, find_devices, simulated
from .runtime import LocalRuntime
from .supervisor.containment import probe as containment

__all__ = [
    "DeviceSource",
    "LocalRuntime",
    "NvmlSource",
    "containment",
    "find_devices",
    "simulated",
]
