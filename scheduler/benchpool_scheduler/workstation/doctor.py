"""``benchpool doctor``: print findings, degraded functions and remedies."""

from __future__ import annotations

import os

import msgspec

from benchpool_scheduler.runtime.local.parking.gpu_facts import NvmlFacts
from benchpool_scheduler.runtime.local.parking.libcuda_driver import LibcudaDriver
from benchpool_scheduler.workstation import parking
from benchpool_scheduler.workstation import state as states
from benchpool_scheduler.workstation.finding import Finding
from benchpool_scheduler.workstation.findings import look
from benchpool_scheduler.workstation.options import DoctorOptions
from benchpool_scheduler.workstation.state import StateFolder


def run(options: DoctorOptions) -> int:
    """Print the report and return the exit status: 1 if a component is broken.

    With ``try_parking`` a small process is parked and restored, and only that is reported.
    """
    folder = states.at(options.state)
    found = [_parking(folder)] if options.try_parking else look(folder, os.environ)
    print(msgspec.json.encode(found).decode() if options.json else report(found))
    wrong = ("broken", "degraded") if options.try_parking else ("broken",)
    return 1 if any(one.level in wrong for one in found) else 0


def _parking(folder: StateFolder) -> Finding:
    with LibcudaDriver() as driver:
        return parking.attempt(folder.path, driver, NvmlFacts())


def report(found: list[Finding]) -> str:
    """Return the findings as text, one per line, with the remedy below.

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
