"""GPU time of sweeps with early stopping, against the same trials run to their end.

``python benchmarks/halving.py [--seeds 4] [--first 3 9] [--at-once 8]``: a pool with real
processes and simulated GPUs. 64 trials train ``benchmarks/trainings/train_small_network.py`` with
random learning rates, widths, weight decays, momenta and batch sizes, for 81 epochs. Then the same
trials run with ``--stop-early 3`` and ``--stop-early 9``: they are judged after 3, 9, 27 and 81
epochs, or without the first of these. Each seed has its own data and values. The scheduler knows
only what the trials report.

*GPU time* is that of the ledger: from the start of each attempt to its end, with the start of the
program and the time to stop. An epoch takes at least ``--epoch-s`` seconds, because such a small
network needs only milliseconds. *Best* is the smallest loss on data that is not trained on, of the
trials that were not stopped: of any epoch, or with ``--metric val_loss`` of the last one.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import checkout
from tables import machine

from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.sweeps import (
    EarlyStopping,
    ListedValues,
    Sweep,
    SweepMethod,
    SweepPlan,
    SweepRequest,
    SweepState,
    ValueRange,
)
from benchpool_scheduler.service import Caller, Pool
from benchpool_support.pools import make_pool, opened

PROGRAM = checkout.TESTS.parent / "benchmarks/trainings/train_small_network.py"
SUSAN = Caller("susan")
CONFIGURATION = """\
version: 1
build: {{reserve: 0}}
projects: [{{name: susan, quota: {gpus}, members: [susan]}}]
"""
VALUES: dict[str, ListedValues | ValueRange] = {
    "lr": ValueRange(1e-4, 3.0, log=True),
    "width": ListedValues([8, 16, 32, 64, 128]),
    "decay": ValueRange(1e-6, 1e-1, log=True),
    "momentum": ValueRange(0.0, 0.95),
    "batch": ListedValues([32, 64, 128]),
}


@dataclass(frozen=True, slots=True)
class Result:
    """Cost and best value of one sweep.

    Attributes:
        gpu_s: GPU-seconds of all attempts. ``epochs``: reported epochs of all trials.
    """

    gpu_s: float
    epochs: int
    best: float
    stopped: int


def plan_of(seed: int, chosen: argparse.Namespace, first: int | None) -> SweepPlan:
    """Return the plan of a sweep, with early stopping from the epoch ``first`` on."""
    return SweepPlan(
        dict(VALUES),
        method=SweepMethod.RANDOM,
        metric=chosen.metric,
        trials=chosen.trials,
        max_concurrent=chosen.at_once,
        seed=seed,
        early_stopping=None if first is None else EarlyStopping(first),
    )


async def swept(
    pool: Pool, seed: int, chosen: argparse.Namespace, first: int | None = None
) -> Result:
    """Run a sweep to its end."""
    options = [f"--{name}={{{name}}}" for name in VALUES]
    fixed = ["--epochs", str(chosen.epochs), "--epoch-s", str(chosen.epoch_s), "--data", str(seed)]
    command = CommandEntry([chosen.python, str(PROGRAM), *options, *fixed])
    sent = JobSubmission(entry=command, name="network", env={"OMP_NUM_THREADS": "1"})
    request = SweepRequest(sent, plan_of(seed, chosen, first))
    found = await pool.sweeps.begin(SUSAN, request)
    while found.state is not SweepState.OVER:
        await asyncio.sleep(1.0)
        found = await pool.sweeps.show(SUSAN, found.id)
    return result_of(found)


def result_of(sweep: Sweep) -> Result:
    """Return the result of a sweep. Raises SystemExit if a trial failed."""
    states = [row.state for row in sweep.trials]
    if not set(states) <= {"done", "stopped-early"} or len(states) != sweep.size:
        raise SystemExit(f"Trials failed: {sweep.text}")
    ended = [row for row in sweep.trials if row.state == "done" and row.value is not None]
    return Result(
        3600 * sum(row.gpu_hours for row in sweep.trials),
        sum(row.step or 0 for row in sweep.trials),
        min(row.value for row in ended if row.value is not None),
        states.count("stopped-early"),
    )


def row(seed: int, first: int, whole: Result, early: Result) -> str:
    """Return the row of one seed and one first rung."""
    cells = (
        f"{seed}",
        f"{first}",
        f"{whole.gpu_s:.0f}",
        f"{early.gpu_s:.0f}",
        f"{early.gpu_s / whole.gpu_s:.2f}",
        f"{early.epochs / whole.epochs:.2f}",
        f"{early.stopped}",
        f"{whole.best:.4f}",
        f"{early.best:.4f}",
        f"{100 * (early.best / whole.best - 1):+.2f} %",
    )
    return f"| {' | '.join(cells)} |"


async def measured(chosen: argparse.Namespace) -> None:
    """Run both sweeps of each seed and print a table."""
    configuration = load(CONFIGURATION.format(gpus=chosen.at_once), "benchpool.yaml")
    print(machine(), "\n")
    print("| seed | `--stop-early` | GPU-s to the end | GPU-s stopped early | ratio ", end="")
    print("| ratio of epochs | stopped early | best | best, stopped early | difference |")
    print(f"|{'---|' * 10}", flush=True)
    for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds):
        with tempfile.TemporaryDirectory() as folder:
            pool = make_pool(Path(folder), configuration=configuration, gpus=chosen.at_once)
            async with opened(pool):
                whole = await swept(pool, seed, chosen)
                for first in chosen.first:
                    early = await swept(pool, seed, chosen, first)
                    print(row(seed, first, whole, early), flush=True)


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=4)
    options.add_argument("--first-seed", type=int, default=1)
    options.add_argument("--first", type=int, nargs="+", default=[3, 9], help="first rungs")
    options.add_argument("--trials", type=int, default=64)
    options.add_argument("--metric", choices=("best_loss", "val_loss"), default="best_loss")
    options.add_argument("--at-once", type=int, default=8)
    options.add_argument("--epochs", type=int, default=81)
    options.add_argument("--epoch-s", type=float, default=0.3)
    options.add_argument("--python", default=sys.executable)
    asyncio.run(measured(options.parse_args()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
