"""Admission rate of the whole service for Kueue's mixes of jobs (``bench time admissions``).

``python benchmarks/admissions.py [--all]``: the mix ``baseline`` in virtual time with both
policies, each in a process of its own; ``--all`` adds it in real time, and the mix ``large``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tables import machine

SHORT = (
    ("baseline", "virtual", "eager"),
    ("baseline", "virtual", "protected"),
)
LONG = (
    ("baseline", "real", "eager"),
    ("large", "virtual", "eager"),
)


def measure(mix: str, clock: str, policy: str) -> Mapping[str, Any]:
    """Run one mix."""
    words = [sys.executable, "-m", "benchpool_scheduler.cli", "bench", "admissions", "--json"]
    words += ["--mix", mix, "--clock", clock, "--policy", policy]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    figures: Mapping[str, Any] = json.loads(done.stdout)
    return figures


def row(figures: Mapping[str, Any]) -> str:
    """Return the row of one run."""
    waits = " / ".join(f"{seconds:.1f}" for seconds in figures["latency_s"].values())
    cells = [
        f"{figures['mix']}, {figures['clock']} clock, {figures['policy']}",
        f"{figures['jobs']:,}",
        f"{figures['wall_s']:.1f}",
        f"{figures['cpu_s']:.1f}",
        f"{figures['makespan_s']:.1f}",
        f"{figures['admissions_per_s']:,.0f}",
        waits,
        f"{figures['useful_utilisation']:.1%}",
        f"{figures['evictions']:,}",
        f"{figures['peak_rss_mib']:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def published(figures: Mapping[str, Any]) -> str:
    """Return the row of Kueue's published figures for the same mix."""
    kueue = figures["kueue"]
    waits = " / ".join(f"{seconds:g}" for seconds in kueue["latency_s"].values()) or "-"
    wall, rate = f"{kueue['wall_s']:g}", f"{kueue['per_s']:g}"
    return (
        f"| {figures['mix']}, Kueue, published | {figures['jobs']:,} | {wall} | - | {wall} "
        f"| {rate} | {waits} | - | - | - |"
    )


def main(runs: Sequence[tuple[str, str, str]]) -> int:
    """Measure and print."""
    print(f"\n### Admissions\n\n{machine()}\n")
    print(
        "| mix | jobs | wall s | CPU s | makespan s | admissions/s "
        "| mean wait s, small / medium / large | useful | evictions | MiB |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    seen: dict[str, Mapping[str, Any]] = {}
    for run in runs:
        figures = measure(*run)
        seen[figures["mix"]] = figures
        print(row(figures), flush=True)
    for figures in seen.values():
        print(published(figures))
    return 0


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--all", action="store_true")
    sys.exit(main(SHORT + LONG if options.parse_args().all else SHORT))
