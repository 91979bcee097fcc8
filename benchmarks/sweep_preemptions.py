"""A sweep whose trials are preempted and paused at random: trials lost, doubled, begun again.

``python benchmarks/sweep_preemptions.py [--trials 200] [--restarts 3] [--seed 1]``: a pool of 6
simulated GPUs with real processes. Susan has a quota of 2 GPUs and a sweep with 6 trials at once.
Joe has a quota of 4 and claims 1 to 4 GPUs again and again, so trials are preempted. Susan pauses
and resumes trials, and the service is closed and opened again. Trials run for about 2 s, save with
``checkpoint.loop`` and record each start and step.

- *lost*: a trial that did not end with the result of an uninterrupted run.
- *doubled*: a trial with two jobs, two ends, or two processes at the same time.
- *begun again*: an attempt that repeated the first step, although an earlier one had done it.
- *steps repeated*: steps that two attempts of a trial have done.

The exit status is 1 if one of the first three is not 0.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import checkout
from tables import machine

from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import CommandEntry, JobSubmission, State
from benchpool_scheduler.contract.sweeps import (
    Sweep,
    SweepMethod,
    SweepPlan,
    SweepRequest,
    SweepState,
    ValueRange,
)
from benchpool_scheduler.errors import Refused
from benchpool_scheduler.service import Pool
from benchpool_support.pools import JOE, SUSAN, cancel_everything, make_pool

PROGRAM = checkout.TESTS.parent / "benchmarks/trainings/train_recorded_steps.py"
STEPS, STEP_S, GPUS = 30, 0.06, 6
CONFIGURATION = """\
version: 1
build: {reserve: 0}
projects:
  - {name: susan, quota: 2, members: [susan]}
  - {name: joe, quota: 4, members: [joe]}
policy: {preemptions_per_hour: 100, preemptions_per_day: 1000}
"""


@dataclass(frozen=True, slots=True)
class Line:
    """Line that a trial has recorded."""

    at: float
    attempt: int
    event: str
    value: str


@dataclass(frozen=True, slots=True)
class Trial:
    """Recorded lines of one trial, in order of time."""

    rate: float
    lines: Sequence[Line]

    def attempts(self) -> list[list[Line]]:
        """Return the lines of each attempt."""
        numbers = sorted({line.attempt for line in self.lines})
        return [[it for it in self.lines if it.attempt == number] for number in numbers]

    def is_lost(self) -> bool:
        """Return whether no end has the result of an uninterrupted run."""
        drawing, weight = random.Random(1), 0.0
        for _ in range(STEPS):
            weight = weight * 0.9 + self.rate * drawing.random()
        return repr(weight) not in [it.value for it in self.lines if it.event == "end"]

    def is_doubled(self) -> bool:
        """Return whether it ended twice, or two of its processes ran at the same time."""
        attempts = self.attempts()
        ends = sum(it.event == "end" for it in self.lines)
        starts = sum(it.event == "start" for it in self.lines)
        overlap = any(one[-1].at > two[0].at for one, two in pairwise(attempts))
        return ends > 1 or starts > len(attempts) or overlap

    def steps(self) -> list[list[int]]:
        """Return the steps of each attempt."""
        return [[int(it.value) for it in one if it.event == "step"] for one in self.attempts()]

    def begun_again(self) -> int:
        """Return the number of attempts that did the first step again."""
        return max(0, sum(0 in steps for steps in self.steps()) - 1)

    def repeated(self) -> int:
        """Return the number of steps that were done more than once."""
        done = [step for steps in self.steps() for step in steps]
        return len(done) - len(set(done))


class Faults:
    """Random claims, pauses and restarts while a sweep runs."""

    def __init__(self, folder: Path, chosen: argparse.Namespace) -> None:
        self._folder, self._chosen = folder, chosen
        self._chance = random.Random(chosen.seed)
        self.claims = self.preempted = self.pauses = self.restarts = 0

    async def run(self) -> Sweep:
        """Run the sweep to its end."""
        sweep: Sweep | None = None
        begun = 0
        while sweep is None or sweep.state is not SweepState.OVER:
            pool = make_pool(self._folder, configuration=load(CONFIGURATION, "it"), gpus=GPUS)
            await pool.open()
            try:
                sweep = sweep or await pool.sweeps.begin(SUSAN, self._request())
                begun += self._chosen.trials // (self._chosen.restarts + 1)
                sweep = await self._disturb(pool, sweep.id, begun)
                if sweep.state is SweepState.OVER:
                    jobs = [pool.jobs.detail(SUSAN, str(row.job)).job for row in sweep.trials]
                    self.preempted = sum(len(job.preemptions) for job in jobs)
                    await cancel_everything(pool)
                else:
                    self.restarts += 1
            finally:
                await pool.close()
        return sweep

    async def _disturb(self, pool: Pool, sweep: str, until: int) -> Sweep:
        """Claim and pause until this number of trials has begun, or until the end."""
        while True:
            found = await pool.sweeps.show(SUSAN, sweep)
            over = found.state is SweepState.OVER
            if over or until <= len(found.trials) < self._chosen.trials:
                return found
            if self._chance.random() < 0.5:
                await self._claim(pool)
            else:
                await self._pause(pool, found)
            await asyncio.sleep(self._chance.uniform(0.1, 0.8))

    async def _claim(self, pool: Pool) -> None:
        if any(job.ended is None for job in pool.jobs.select(JOE)):
            return
        sleep = CommandEntry(["sleep", f"{self._chance.uniform(0.2, 1.5):.2f}"])
        await pool.jobs.submit(JOE, JobSubmission(entry=sleep, gpus=self._chance.randint(1, 4)))
        self.claims += 1

    async def _pause(self, pool: Pool, sweep: Sweep) -> None:
        running = [it.job for it in sweep.trials if it.job and it.job_state == State.RUNNING]
        if not running:
            return
        job = self._chance.choice(running)
        with contextlib.suppress(Refused):  # it has ended meanwhile
            await pool.jobs.act(SUSAN, job, "pause")
            self.pauses += 1
            await pool.jobs.act(SUSAN, job, "resume")

    def _request(self) -> SweepRequest:
        file = str(self._folder / "trial-{rate}")
        command = [sys.executable, str(PROGRAM), "{rate}", file, str(STEPS), str(STEP_S)]
        plan = SweepPlan(
            {"rate": ValueRange(0.1, 10.0, log=True)},
            method=SweepMethod.RANDOM,
            metric="weight",
            trials=self._chosen.trials,
            max_concurrent=GPUS,
        )
        return SweepRequest(JobSubmission(entry=CommandEntry(command), name="rates"), plan)


def read(folder: Path, sweep: Sweep) -> list[Trial]:
    """Return what each trial of a sweep has recorded."""
    found = []
    for trial in sweep.trials:
        rate = trial.parameters["rate"]
        file = folder / f"trial-{rate}"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        parsed = [Line(float(at), int(attempt), event, of) for at, attempt, event, of in lines]
        found.append(Trial(float(rate), sorted(parsed, key=lambda it: it.at)))
    return found


def main() -> int:
    """Run, print a table, and return 1 if a trial was lost, doubled or begun again."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--trials", type=int, default=200)
    options.add_argument("--restarts", type=int, default=3)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        faults = Faults(Path(name), chosen)
        sweep = asyncio.run(faults.run())
        trials = read(Path(name), sweep)
    jobs = {row.job for row in sweep.trials}
    attempts = sum(len(trial.attempts()) for trial in trials)
    missing = chosen.trials - len(sweep.trials)
    counts = (
        missing + sum(trial.is_lost() for trial in trials),
        len(sweep.trials) - len(jobs) + sum(trial.is_doubled() for trial in trials),
        sum(trial.begun_again() for trial in trials),
    )
    repeated = sum(trial.repeated() for trial in trials)
    took = f"{time.monotonic() - began:.0f}"
    disturbed = (faults.preempted, faults.pauses, faults.restarts)
    cells = (chosen.seed, len(trials), attempts, *disturbed, *counts, repeated, took)
    print(f"{machine()}\n\n{sweep.text}\n")
    print("| seed | trials | attempts | preemptions | pauses | restarts | lost | doubled ", end="")
    print("| begun again | steps repeated | in s |")
    print(f"|{'---|' * len(cells)}\n| {' | '.join(map(str, cells))} |")
    return 1 if any(counts) else 0


if __name__ == "__main__":
    sys.exit(main())
