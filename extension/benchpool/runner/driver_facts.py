"""Versions of the NVIDIA driver and the CUDA toolkit of this machine."""

from __future__ import annotations

import json
import re
from pathlib import Path

DRIVER = Path("/proc/driver/nvidia/version")
TOOLKIT = Path("/usr/local/cuda/version.json")

_MODULE = re.compile(r"Kernel Module\s+(?:for \S+\s+)?([\d.]+)")


def driver(file: Path = DRIVER) -> str | None:
    """Return the version of the NVIDIA driver, as reported by the operating system's kernel."""
    try:
        found = _MODULE.search(file.read_text("utf-8", "replace"))
    except OSError:
        return None
    return found[1] if found is not None else None


def toolkit(file: Path = TOOLKIT) -> str | None:
    """Return the version of the CUDA toolkit, or None if none is installed in the usual place."""
    try:
        return str(json.loads(file.read_text("utf-8"))["cuda"]["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
