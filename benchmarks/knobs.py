"""Cost of each setting of the policy: a trace replayed with one setting changed at a time.

    python benchmarks/knobs.py TRACE.csv.gz --gpus 650 --window 21:35 --min-jobs 51

Quotas are those of ``benchpool replay --quota-rule p98-scaled``. The run takes as many replays as
there are rows.
"""

from __future__ import annotations

import argparse
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from benchpool_scheduler.core.model import Policy, Project, ProjectName
from benchpool_scheduler.simulation.replay import report
from benchpool_scheduler.simulation.replay.engine import Costs
from benchpool_scheduler.simulation.replay.summary import Summary
from benchpool_scheduler.simulation.whatif import Side, replay_on

SETTINGS: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("min_runtime_s", (600.0, 3600.0)),
    ("preemptions_per_hour", (1, 0)),
    ("preemptions_per_day", (12, 6, 2)),
    ("long_run_s", (0.0, 1800.0, 28_800.0)),
    ("claim_delay_s", (0.0, 300.0)),
)
"""Settings and the values that are tried beside the default."""

COSTS: tuple[tuple[str, Costs], ...] = (
    ("a restart costs 600 s", Costs(restart_s=600.0)),
    ("a pause loses 600 s of progress", Costs(lost_progress_s=600.0)),
)
"""Possible costs of jobs that restart slowly or save seldom."""

HEADINGS = "| changed | mean wait h | 99 % wait h | short jobs wait min | mean completion h | "
HEADINGS += "pauses per job | lost GPU h |"


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("trace", type=Path)
    options.add_argument("--gpus", type=int, required=True)
    options.add_argument("--window")
    options.add_argument("--min-jobs", type=int, default=0)
    given = options.parse_args()
    found = report.prepared(
        report.ReplayOptions(
            given.trace, gpus=given.gpus, window=given.window, min_jobs=given.min_jobs
        )
    )
    projects = tuple(Project(ProjectName(name), quota=n) for name, n in found.quotas.items())
    usual = Side(found.pool.as_nodes(), projects, Policy())
    print(f"{len(found.jobs)} jobs on {given.gpus} GPUs\n\n{HEADINGS}")
    print("|---" + "|---:" * 6 + "|")

    def row(name: str, side: Side, costs: Costs) -> None:
        print(_row(name, replay_on(side, found.jobs, costs, found.window_s)), flush=True)

    row("nothing", usual, Costs())
    known = {field.name for field in fields(Policy)}
    for setting, values in SETTINGS:
        for value in values if setting in known else ():
            one: dict[str, Any] = {setting: value}
            changed = replace(usual.policy, **one)
            row(f"`{setting}: {value:g}`", replace(usual, policy=changed), Costs())
    for name, costs in COSTS:
        row(name, usual, costs)


def _row(name: str, of: Summary) -> str:
    figures = (
        f"{of.mean_wait_h:.2f}",
        f"{of.p99_wait_h:.1f}",
        f"{of.short_job_wait_min:.1f}",
        f"{of.mean_jct_h:.2f}",
        f"{of.preemptions_per_job:.3f}",
        f"{of.lost_gpu_h:.0f}",
    )
    return f"| {name} | {' | '.join(figures)} |"


if __name__ == "__main__":
    main()
