"""Show what real trackers have recorded of a job that was paused five times.

``python benchmarks/tracker_runs.py [--python PYTHON]``: a pool with real workers runs a training
that logs to W&B (offline), MLflow, Trackio and TensorBoard. It is paused and resumed five times:
once as it should be, and once so that each attempt repeats two steps, like a job that was ended
between two saves. PYTHON is an interpreter with the trackers; by default that of ``make
test-trackers``. With torch, TensorBoard's files are written by its ``SummaryWriter``. The exit
status is 1 if a tracker has more than one run, or lacks a step.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import checkout  # noqa: F401  # before the imports from the tests
from tables import machine

from benchpool_support.tracked_jobs import PAUSES, TURN, environment, tracked_site

TRACKERS = ("wandb", "mlflow", "trackio", "tensorboard")
STEPS = (PAUSES + 1) * TURN


def row(tracker: str, repeated: int, runs: Sequence[dict[str, Any]]) -> str:
    """Return the row of a tracker.

    Args:
        repeated: Steps that each attempt repeated.
    """
    steps = [step for run in runs for step in run["steps"]]
    status = ", ".join(run["status"] or "-" for run in runs)
    again = len(steps) - len(set(steps))
    cells = (tracker, repeated, len(runs), status, f"{min(steps)} to {max(steps)}", len(set(steps)))
    return f"| {' | '.join(map(str, (*cells, again)))} |"


def main() -> int:
    """Run both jobs and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--python", type=Path)
    python = options.parse_args().python or environment() / "bin" / "python"
    names = "wandb|mlflow|trackio|tensorboard|torch"
    listed = subprocess.run([python, "-m", "pip", "freeze"], capture_output=True, text=True)
    found = [one for one in listed.stdout.split() if one.partition("==")[0] in names.split("|")]
    print(f"{machine()}\n\n{', '.join(found)}; {PAUSES} pauses, {STEPS} steps\n")
    print("| tracker | steps repeated in each pause | runs | status | steps | different | twice |")
    print("|---|---|---|---|---|---|---|", flush=True)
    whole = True
    for back in (0, 2):
        with tempfile.TemporaryDirectory() as folder, tracked_site(Path(folder), python) as site:
            site.paused_often(site.send("--back", str(back), "--trackers", *TRACKERS))
            for tracker, runs in site.shown(*TRACKERS).items():
                print(row(tracker, back, runs), flush=True)
                whole &= len(runs) == 1 and set(runs[0]["steps"]) == set(range(STEPS))
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
