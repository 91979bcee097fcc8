"""Memory that this process may still take: that of the machine, and below its cgroups' limits.

Pages of files that the kernel can drop count as free.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
_V2 = ("memory.max", "memory.current", "inactive_file")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def available(proc: Path = PROC, cgroups: Path = CGROUPS) -> int:
    """Return the free memory in bytes; 0 if it is unknown."""
    machine = _field(proc / "meminfo", "MemAvailable:")
    if machine is None:
        return 0
    return min([machine * 1024, *_left_in_cgroups(proc, cgroups)])


def _left_in_cgroups(proc: Path, cgroups: Path) -> Iterator[int]:
    """Yield the bytes left in each memory cgroup of this process that has a limit."""
    for line in _text(proc / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = cgroups, _V2
        elif "memory" in controllers.split(","):
            root, names = cgroups / "memory", _V1
        else:
            continue
        inside = root / os.path.normpath(f"/{path}").lstrip("/")
        # In a container the path may be the host's. Then only the topmost folder exists.
        for folder in (inside, *inside.parents):
            left = _left(folder, *names)
            if left is not None:
                yield left
            if folder == root:
                break


def _left(folder: Path, limit: str, used: str, cache: str) -> int | None:
    bound, taken = _text(folder / limit).strip(), _text(folder / used).strip()
    if not (bound.isdecimal() and taken.isdecimal()):
        return None
    reclaimable = _field(folder / "memory.stat", cache) or 0
    return max(0, int(bound) - int(taken) + reclaimable)


def _field(file: Path, name: str) -> int | None:
    found = re.search(rf"^{re.escape(name)}\s+(\d+)", _text(file), re.MULTILINE)
    return None if found is None else int(found[1])


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError:
        return ""
