"""``benchpool doctor``: print what was found, what is degraded, and what to do about it."""

from __future__ import annotations

import os

import msgspec

from benchpool_scheduler.workstation.finding import Finding
from benchpool_scheduler.workstation.findings import look
from benchpool_scheduler.workstation.options import DoctorOptions
from benchpool_scheduler.workstation.state import StateFolder


def run(options: DoctorOptions) -> int:
    """Print the report and return the exit status: 1 where something is broken."""
    folder = StateFolder(options.state.expanduser().absolute())
    found = look(folder, os.environ)
    print(msgspec.json.encode(found).decode() if options.json else report(found))
    return 1 if any(one.level == "broken" for one in found) else 0


def report(found: list[Finding]) -> str:
    """Return the findings as text, one a line, with the remedy below.

    >>> print(report([Finding("Disk", "degraded", "5 GiB free.", "Make room.")]))
    degraded  Disk         5 GiB free.
                           -> Make room.
    """
    lines = []
    for one in found:
        lines.append(f"{one.level:<10}{one.name:<13}{one.text}")
        if one.remedy:
            lines.append(f"{'':23}-> {one.remedy}")
    return "\n".join(lines)
