"""Peak memory of this process.

``VmHWM`` is used if available (Linux): ``ru_maxrss`` of a new process begins with that of its
parent process.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_rss_mib() -> float:
    """Return the peak resident memory of this process, in MiB."""
    if STATUS.exists():
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    scale = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale
