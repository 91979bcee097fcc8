"""Workers as processes of this machine."""

from .gpus import DeviceSource, NvmlSource, find_devices, simulated
from .runtime import LocalRuntime

__all__ = [
    "DeviceSource",
    "LocalRuntime",
    "NvmlSource",
    "find_devices",
    "simulated",
]
