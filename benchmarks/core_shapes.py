"""Duration of the decision core over pools of fixed shapes (``benchpool bench``).

``python benchmarks/core_shapes.py [--quick] [--json]``: every shape at the sizes of
``docs/performance.md``, each in a process of its own, one warm-up and at least five runs;
``--quick`` leaves out 10,000 nodes.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass

from tables import machine

from benchpool_scheduler.simulation.shapes.timing import Timed, as_json, in_a_fresh_process


@dataclass(frozen=True, slots=True)
class Wanted:
    """Shape at a size, with the upper bound of its median and the aim, in ms."""

    shape: str
    nodes: int
    least_ms: float | None
    aim_ms: float | None


WANTED = (
    Wanted("fill", 500, 2_000, 500),
    Wanted("drain", 500, None, None),
    Wanted("drain", 1_000, 2_000, 300),
    Wanted("swap", 200, None, None),
    Wanted("swap", 500, 2_000, 500),
    Wanted("blocked", 1_000, 1_000, 100),
    Wanted("gang", 1_000, 1_000, 100),
    Wanted("cycle", 1_000, 300, 100),
    Wanted("event", 1_000, 50, 10),
    Wanted("cycle", 10_000, 5_000, 1_000),
    Wanted("event", 10_000, 300, 50),
)


def row(wanted: Wanted, timed: Timed) -> str:
    """Return the row of one shape."""
    bounds = [
        "-" if bound is None else f"{bound:,.0f}" for bound in (wanted.least_ms, wanted.aim_ms)
    ]
    cells = [
        f"`{timed.shape}`",
        f"{timed.nodes:,}",
        f"{timed.jobs:,}",
        timed.result,
        *(f"{ms:,.1f}" for ms in (timed.ms_min, timed.ms_median, timed.ms_max)),
        *bounds,
        f"{timed.peak_rss_mib:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Measure and print; return 1 if a plan is not the expected plan of its shape."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    wanted = [one for one in WANTED if one.nodes < 10_000 or not chosen.quick]
    if not chosen.json:
        print(f"\n### The decision core\n\n{machine()}\n")
        print(
            "| shape | nodes | jobs | result | min ms | median ms | max ms | at least | aim | MiB |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|")
    rows = []
    for one in wanted:
        rows.append(in_a_fresh_process(one.shape, one.nodes))
        if not chosen.json:
            print(row(one, rows[-1]), flush=True)
    if chosen.json:
        print(json.dumps([as_json(timed) for timed in rows]))
    return 0 if all(timed.ok for timed in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
