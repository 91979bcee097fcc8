"""Position of a slice (MIG) in its GPU, and whether measured values are its alone.

A GPU is divided into GPU instances, and each of those into compute instances. An assigned slice is
one compute instance. The driver's performance monitoring measures GPU instances.

Source: NVIDIA's NVML API reference, "Multi Instance GPU Management".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pynvml


@dataclass(frozen=True, slots=True)
class SlicePlace:
    """Position of a slice.

    Attributes:
        parent: Handle of its GPU. ``uuid``: the GPU's.
        instance: Number of its GPU instance there.
        alone: Whether it is the only slice in that instance.
    """

    parent: Any
    uuid: str
    instance: int
    alone: bool


def place_of(ask: Callable[..., Any]) -> SlicePlace | None:
    """Return the position of a slice; None for a whole GPU, or without the driver's answer.

    Args:
        ask: Call to the slice's driver; returns None without an answer.
    """
    if not is_slice(ask(pynvml.nvmlDeviceIsMigDeviceHandle)):
        return None
    parent = ask(pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle)
    instance = ask(pynvml.nvmlDeviceGetGpuInstanceId)
    if parent is None or instance is None:
        return SlicePlace(None, "", -1, alone=False)
    inside = [it for it in _slices(parent) if _instance(it) == instance]
    return SlicePlace(
        parent, str(pynvml.nvmlDeviceGetUUID(parent)), int(instance), alone=len(inside) == 1
    )


def is_slice(answer: Any) -> bool:
    """Return whether the binding's answer is true: releases return a C number or its value.

    >>> from ctypes import c_uint
    >>> is_slice(c_uint(1)), is_slice(1), is_slice(c_uint(0)), is_slice(None)
    (True, True, False, False)
    """
    return bool(getattr(answer, "value", answer))


def _slices(parent: Any) -> list[Any]:
    found = []
    for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(parent)):
        try:
            found.append(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, number))
        except pynvml.NVMLError_NotFound:
            continue  # slice numbers can have gaps
    return found


def _instance(part: Any) -> int | None:
    try:
        return int(pynvml.nvmlDeviceGetGpuInstanceId(part))
    except pynvml.NVMLError:
        return None
