"""Waits of single jobs beside 200 trials of another user, against the same pool without them.

``python benchmarks/sweep_waits.py [--seeds 3] [--hours 10]``: the whole service in virtual time,
with a timer in place of each worker. Three users send single jobs of 1 GPU. A fourth user has
started a sweep, an array, or as many single jobs. A preempted worker saves its state, leaves after
``SAVE_S``, and later continues from there.

A wait is the time from the submission of a single job to its start. Both means of a ratio are over
the same jobs of all seeds: those submitted after the trials. *Added*: the difference of the means.
*Trials done*: until the last single job had ended.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from tables import machine

from benchpool_scheduler.admissions.virtual_clock import (
    VirtualClock,
    VirtualTimeLoop,
    WatchedStore,
)
from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.sweeps import (
    BELOW_SINGLE_JOBS,
    TASK,
    ListedValues,
    SweepMethod,
    SweepPlan,
    SweepRequest,
    ValueRange,
)
from benchpool_scheduler.hub import StaticDirectory
from benchpool_scheduler.runtime import EndedBy, Launch, Notice, WorkerId
from benchpool_scheduler.runtime.simulated import SimulatedRuntime, simulated_devices
from benchpool_scheduler.service import Caller, Pool

USERS = ("ann", "ben", "cay")
SWEEPER = "dan"
TRIALS = 200
TRIAL_S = 600.0
BEGIN_S = 1800.0
"""When the fourth user starts the trials."""
SAVE_S = 10.0
"""Time from a notice until a worker has saved its state and left."""
LOAD_S = 20.0
"""Time until a continued worker makes progress again."""
PRIORITY = 50
AT_PAR = PRIORITY + BELOW_SINGLE_JOBS
"""Priority of a sweep whose trials have that of single jobs."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Single job: its time of submission, its user and its run time, in seconds."""

    at_s: float
    user: str
    run_s: float


@dataclass(frozen=True, slots=True)
class Fourth:
    """What the fourth user sends.

    Attributes:
        at_once: Trials that are jobs at a time; 0 for none at all.
        array: As an array. ``single``: as single jobs, without a sweep.
    """

    name: str
    at_once: int = 0
    priority: int = PRIORITY
    array: bool = False
    single: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """A pool, the single jobs in it, and what the fourth user sends there, one after the other."""

    name: str
    gpus: int
    projects: str
    jobs: Callable[[int], list[Arrival]]
    fourth: tuple[Fourth, ...]


def stream(seed: int, load_: float, gpus: int, hours: float) -> list[Arrival]:
    """Return single jobs that together need this share of the GPUs.

    Run times are log-normal with a median of 20 minutes and a mean of 33, and at most 3 hours.
    """
    chance = random.Random(seed)
    found, now = list[Arrival](), 0.0
    while (now := now + chance.expovariate(load_ * gpus / 2000.0)) < hours * 3600:
        run_s = min(10800.0, 1200.0 * chance.lognormvariate(0.0, 1.0))
        found.append(Arrival(now, chance.choice(USERS), run_s))
    return found


def three(seed: int) -> list[Arrival]:
    """Return one job of half an hour of each user, sent a minute apart."""
    at_s = BEGIN_S + random.Random(seed).uniform(600.0, 3600.0)
    return [Arrival(at_s + 60.0 * place, user, 1800.0) for place, user in enumerate(USERS)]


def scenarios(hours: float) -> tuple[Scenario, ...]:
    """Return what is measured."""
    nothing = Fourth("nothing")
    lower = (
        Fourth("sweep, `--at-once 4` (default)", 4),
        Fourth("sweep, `--at-once 64`", 64),
        Fourth("`--array 0-199`", TRIALS, array=True),
        Fourth("`benchpool.map`, 200 calls", TRIALS, AT_PAR - 2 * BELOW_SINGLE_JOBS, single=True),
    )
    par = (
        Fourth("sweep, `--at-once 4 --priority 60`", 4, AT_PAR),
        Fourth("`--array 0-199 --priority 60`", TRIALS, AT_PAR, array=True),
    )
    one = "[{name: lab, quota: %d, limit: %d, members: [ann, ben, cay, dan]}]"
    each = ", ".join(f"{{name: {user}, quota: 2, members: [{user}]}}" for user in (*USERS, SWEEPER))
    return (
        Scenario("a: three jobs, one project of 2 GPUs", 2, one % (2, 2), three,
                 (nothing, *lower, *par)),
        Scenario("b: jobs for 80 % of one project of 8 GPUs", 8, one % (8, 8),
                 lambda seed: stream(seed, 0.8, 8, hours), (nothing, *lower, *par)),
        Scenario("c: jobs for 60 % of 8 GPUs, four projects of quota 2", 8, f"[{each}]",
                 lambda seed: stream(seed, 0.6, 8, hours),
                 (nothing, Fourth("sweep, `--at-once 2`", 2), *lower)),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """One pool over its time: waits of single jobs in seconds, ended trials, their preemptions."""

    waits: tuple[float, ...]
    trials: int
    preempted: int


class ContinuingRuntime(SimulatedRuntime):
    """Runtime whose workers keep their progress: ``run SECONDS`` ends after these seconds of work.

    Attributes:
        first: First start of each job. ``ended``: jobs that have done their work.
        preempted: Jobs that got a notice, once for each.
    """

    def __init__(self, gpus: int, clock: VirtualClock) -> None:
        super().__init__(simulated_devices(gpus))
        self._clock = clock
        self._timers: dict[WorkerId, asyncio.TimerHandle] = {}
        self._since: dict[WorkerId, float] = {}
        self._left: dict[str, float] = {}
        self.first: dict[str, float] = {}
        self.ended: set[str] = set()
        self.preempted: list[str] = []

    async def close(self) -> None:
        """End the stream of events and all workers."""
        for timer in self._timers.values():
            timer.cancel()
        await super().close()

    async def run_worker(self, launch: Launch) -> None:
        """Work for the rest of the time of its command."""
        job, now = launch.worker.job, self._clock.now()
        resumed = job in self.first
        self.first.setdefault(job, now)
        left = self._left.setdefault(job, float(launch.argv[1]))
        self._since[launch.worker] = now + (LOAD_S if resumed else 0.0)
        self.begin(launch.worker, now)
        self._later(launch.worker, self._since[launch.worker] - now + left, self._finish)

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        """Save the progress and leave a little later."""
        timer = self._timers.pop(worker, None)
        since = self._since.pop(worker, None)
        if timer is None or since is None:
            return
        timer.cancel()
        self.preempted.append(worker.job)
        self._left[worker.job] -= max(0.0, self._clock.now() - since)
        self._later(worker, SAVE_S, self._leave)

    def _later(self, worker: WorkerId, seconds: float, then: Callable[[WorkerId], None]) -> None:
        self._timers[worker] = asyncio.get_running_loop().call_later(seconds, then, worker)

    def _finish(self, worker: WorkerId) -> None:
        self._timers.pop(worker)
        self._since.pop(worker)
        self.ended.add(worker.job)
        self.end(worker, 0, EndedBy.ITSELF, self._clock.now())

    def _leave(self, worker: WorkerId) -> None:
        self._timers.pop(worker)
        self.end(worker, 75, EndedBy.NOTICE, self._clock.now())


class Stage:
    """One pool in virtual time, with its single jobs and the fourth user's trials."""

    def __init__(self, scenario: Scenario, jobs: Sequence[Arrival], fourth: Fourth) -> None:
        self._scenario, self._jobs, self._fourth = scenario, jobs, fourth

    async def play(self, folder: Path) -> Run:
        """Run the pool until all single jobs have ended."""
        clock = VirtualClock(asyncio.get_running_loop())
        runtime = ContinuingRuntime(self._scenario.gpus, clock)
        pool = Pool(
            WatchedStore(folder / "scheduler"),
            runtime,
            load(f"version: 1\nbuild: {{reserve: 0}}\nprojects: {self._scenario.projects}", "it"),
            state=folder,
            directory=StaticDirectory(),
            clock=clock,
            base_url="http://pool.invalid/services/benchpool",
        )
        await pool.open()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send_trials(pool))
                singles = await self._send_singles(pool, clock)
            while not runtime.ended >= singles.keys():
                await asyncio.sleep(60.0)
        finally:
            await pool.close()
        return Run(
            tuple(runtime.first[job] - at for job, at in singles.items()),
            len(runtime.ended - singles.keys()),
            sum(job not in singles for job in runtime.preempted),
        )

    async def _send_singles(self, pool: Pool, clock: VirtualClock) -> dict[str, float]:
        """Return the time of submission of each job that was sent after the trials."""
        start, found = clock.now(), dict[str, float]()
        for number, job in enumerate(self._jobs):
            await asyncio.sleep(max(0.0, start + job.at_s - clock.now()))
            sent = self._job(job.run_s, job.user, f"single {number}")
            accepted = await pool.jobs.submit(Caller(job.user), sent)
            if job.at_s > BEGIN_S:
                found[accepted.id] = clock.now()
        return found

    async def _send_trials(self, pool: Pool) -> None:
        fourth, caller = self._fourth, Caller(SWEEPER)
        await asyncio.sleep(BEGIN_S)
        sent = self._job(TRIAL_S, SWEEPER, "trial", fourth.priority)
        if fourth.single:
            for _ in range(TRIALS):
                await pool.jobs.submit(caller, sent)
        elif fourth.at_once:
            await pool.sweeps.begin(caller, SweepRequest(sent, plan_of(fourth)))

    def _job(self, run_s: float, user: str, name: str, priority: int = PRIORITY) -> JobSubmission:
        project = "lab" if "lab" in self._scenario.projects else user
        command = CommandEntry(["run", repr(run_s)])
        return JobSubmission(entry=command, name=name, project=project, priority=priority)


def plan_of(fourth: Fourth) -> SweepPlan:
    """Return the plan of the trials."""
    if fourth.array:
        tasks: list[bool | int | float | str] = list(range(TRIALS))
        return SweepPlan({TASK: ListedValues(tasks)}, max_concurrent=fourth.at_once, array=True)
    return SweepPlan(
        {"lr": ValueRange(1e-5, 1e-1, log=True)},
        method=SweepMethod.RANDOM,
        trials=TRIALS,
        max_concurrent=fourth.at_once,
    )


def played(scenario: Scenario, seed: int, fourth: Fourth) -> Run:
    """Run a pool in virtual time."""
    with (
        tempfile.TemporaryDirectory(prefix="benchpool-bench-") as folder,
        asyncio.Runner(loop_factory=VirtualTimeLoop) as runner,
    ):
        stage = Stage(scenario, scenario.jobs(seed), fourth)
        return runner.run(stage.play(Path(folder)))


def row(fourth: Fourth, runs: Sequence[Run], without: Sequence[Run]) -> str:
    """Return the row of one fourth user."""
    waits = [wait for run in runs for wait in run.waits]
    mean, floor = fmean(waits), fmean(wait for run in without for wait in run.waits)
    cells = (
        fourth.name,
        f"{len(waits)}",
        f"{mean:.0f}",
        f"{mean - floor:+.1f}",
        f"{mean / floor:.2f}",
        f"{max(waits):.0f}",
        f"{sum(run.trials for run in runs)}",
        f"{sum(run.preempted for run in runs)}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--hours", type=float, default=10.0, help="of single jobs in b and c")
    options.add_argument("--only", choices="abc", help="only this scenario")
    given = options.parse_args()
    print(machine())
    for scenario in scenarios(given.hours):
        if given.only not in (None, scenario.name[0]):
            continue
        print(f"\n{scenario.name}\n")
        print(
            "| fourth user | single jobs | mean wait s | added s | ratio | longest wait s ", end=""
        )
        print(
            "| trials done | preemptions of trials |\n|---|---|---|---|---|---|---|---|", flush=True
        )
        without: list[Run] = []
        for fourth in scenario.fourth:
            runs = [played(scenario, seed, fourth) for seed in range(1, given.seeds + 1)]
            without = without or runs
            print(row(fourth, runs, without), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
