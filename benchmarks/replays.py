"""Recorded workloads in virtual time: waits and use beside baselines and floors (issue table).

    python benchmarks/replays.py TRACES [--search] [--only philly|shockwave]

``TRACES`` is a folder with ``philly-2017.csv.gz`` and ``shockwave-120.csv.gz``. A row is one run of
``benchpool replay`` with the printed options; ``guaranteed`` learns run times as the service does
and starts with none. ``--search`` adds the number of GPUs that the product needs for the mean wait
of fixed partitions with 1,600 GPUs; it takes some more replays.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile

from tables import machine

from benchpool_scheduler.core.model import Policy
from benchpool_scheduler.simulation.replay.report import ReplayOptions, replay
from benchpool_scheduler.simulation.replay.summary import Summary

AGELESS = Policy(long_run_s=0.0)
"""Policy without long-running jobs: plain guaranteed quotas."""

STATIC_GPUS = 1600
STEP = 10

COLUMNS = (
    "policy", "GPUs", "allocated", "mean wait h", "p99 wait h", "under 1 h: wait min",
    "mean JCT h", "of its floor", "preemptions per job", "lost work", "wall s",
)  # fmt: skip


def philly(traces: Path, gpus: int, policy: str = "guaranteed") -> ReplayOptions:
    """Return the options of the Philly figures."""
    trace = traces / "philly-2017.csv.gz"
    return ReplayOptions(trace, gpus=gpus, policy=policy, window="21:98", min_jobs=51)


def row(name: str, it: Summary) -> str:
    """Return a row of the table."""
    lost_part = it.allocated_utilisation - it.useful_utilisation
    lost = lost_part / it.allocated_utilisation if it.allocated_utilisation else 0.0
    cells = (
        name,
        f"{it.gpus}",
        f"{it.allocated_utilisation:.1%}",
        f"{it.mean_wait_h:.3f}",
        f"{it.p99_wait_h:.2f}",
        f"{it.short_job_wait_min:.2f}",
        f"{it.mean_jct_h:.3f}",
        f"{it.mean_jct_h / it.floor_mean_jct_h:.3f}",
        f"{it.preemptions_per_job:.4f}",
        f"{lost:.3%}",
        f"{it.wall_s:.1f}",
    )
    return f"| {' | '.join(cells)} |"


def table(title: str, rows: Sequence[str]) -> None:
    """Print rows as a table."""
    print(f"\n### {title}\n\n{machine()}\n")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    print("\n".join(rows), flush=True)


def show_philly(traces: Path, *, search: bool) -> None:
    """Print the waits on 650 GPUs, and the GPUs that fixed partitions need."""
    best, _ = replay(philly(traces, 650))
    plain, _ = replay(philly(traces, 650), AGELESS)
    fixed, _ = replay(philly(traces, STATIC_GPUS, "static"))
    rows = [
        row("guaranteed", best),
        row("guaranteed, long_run_s 0", plain),
        row("static", fixed),
    ]
    if search:
        rows.append(row("guaranteed, the wait of static", least_gpus(traces, fixed.mean_wait_h)))
    table("philly-2017, --window 21:98 --min-jobs 51", rows)
    print(
        f"\n{best.jobs} jobs; floor of the mean JCT {best.floor_mean_jct_h:.3f} h, ceiling of use "
        f"{best.ceiling_utilisation:.1%}; {best.passes} passes, median {best.pass_ms_p50:.2f} ms, "
        f"p99 {best.pass_ms_p99:.2f} ms"
    )


def least_gpus(traces: Path, wait_h: float, low: int = 560, high: int = 720) -> Summary:
    """Return the replay with the fewest GPUs, in steps of ten, that waits at most ``wait_h``."""
    found, _ = replay(philly(traces, high))
    while high - low > STEP:
        middle = (low + high) // (2 * STEP) * STEP
        tried, _ = replay(philly(traces, middle))
        if tried.mean_wait_h <= wait_h:
            found, high = tried, middle
        else:
            low = middle
    return found


def show_shockwave(traces: Path) -> None:
    """Print makespan and completion on 32 GPUs with rigid jobs.

    With one project there is no competition for a quota; with a quota of 0 all of the pool is
    surplus.
    """
    options = ReplayOptions(traces / "shockwave-120.csv.gz", gpus=32)
    with NamedTemporaryFile("w", suffix=".csv") as nothing:
        nothing.write("project,quota\nall,0\n")
        nothing.flush()
        lent, _ = replay(replace(options, quotas=Path(nothing.name)))
    print(f"\n### shockwave-120, --gpus 32\n\n{machine()}\n")
    print("| policy | makespan ks | mean JCT ks | preemptions per job |\n|---|---|---|---|")
    rows = {name: replay(replace(options, policy=name))[0] for name in ("guaranteed", "fifo")}
    for name, it in {"guaranteed, with a quota of 0": lent, **rows}.items():
        makespan_ks, jct_ks = it.makespan_d * 86.4, it.mean_jct_h * 3.6
        print(f"| {name} | {makespan_ks:.1f} | {jct_ks:.2f} | {it.preemptions_per_job:.3f} |")
    print(
        f"| floors | {it.floor_makespan_d * 86.4:.1f} | {it.floor_mean_jct_h * 3.6:.2f} | |",
        flush=True,
    )


def main() -> None:
    """Replay and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", type=Path)
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--only", choices=["philly", "shockwave"])
    given = parser.parse_args()
    if given.only != "philly":
        show_shockwave(given.traces)
    if given.only != "shockwave":
        show_philly(given.traces, search=given.search)


if __name__ == "__main__":
    main()
