"""A real service in virtual time that receives the jobs of a recorded trace, day after day.

Submissions, passes, preemptions and ends are the service's own. The arrival of a job, its GPUs and
its run time come from the trace. A trace contains neither users nor the activity of GPUs, so these
are made up: ``traced_use.whose`` gives the user, and the job's line gives its activity. Jobs save
every half hour, and one in eight never saves. A preempted job continues from its last checkpoint.
Benches are held by day.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from benchpool_scheduler.contract import Job, LeaseRequest, State
from benchpool_scheduler.contract.use import UseQuery
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.runtime import Device, EndedBy, Launch, WorkerId, WorkerProgress
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.simulation.replay.trace import TraceJob
from benchpool_scheduler.telemetry import GpuSample, HeldSample, Holder
from benchpool_scheduler.telemetry.samples import HeldWorkerSample, WorkerSample
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import ADMIN, HUB, sleeper
from benchpool_support.scripted import ScriptedRuntime
from benchpool_support.traced_use import DAY_S, HOUR_S, TEAMS, whose

TICK_S = 60
SAVES_IN_S = 20.0
"""Time from a worker's notice to its end, in seconds."""

AGAIN_S = 30.0
"""Delay before a server start that found no free GPU is retried, in seconds."""

LONGEST_S, SHORTEST_S = 3 * DAY_S, 300
LARGEST = 8
SAVES_EVERY_S = 1800.0
PASSES = 50
"""Maximum number of passes at one instant, after which the pool counts as restless."""

WORDS = ("resnet", "whisper", "diffusion", "folds", "grasp", "vit", "llama-lora", "unet")


class TimelyRuntime(ScriptedRuntime):
    """Runtime whose workers start at their launch and end some seconds after a notice."""

    def __init__(self, gpus: Sequence[Device], clock: FakeClock) -> None:
        super().__init__(gpus, start_at_once=False)
        self._clock = clock

    async def run_worker(self, launch: Launch) -> None:
        """Start the worker."""
        await super().run_worker(launch)
        self.begin(launch.worker, self._clock.now())


def chosen(
    jobs: Sequence[TraceJob], day: float, days: float, gpus: int, load: float = 1.0
) -> list[TraceJob]:
    """Return a random part of the jobs of some days of a trace that is enough work for these GPUs.

    Args:
        load: Work of the chosen jobs as a part of the capacity of the GPUs in these days.
    """
    first, last = day * DAY_S, (day + days) * DAY_S
    fit = [
        job
        for job in jobs
        if first <= job.submit_s < last
        and job.gpus <= LARGEST
        and SHORTEST_S < job.duration_s < LONGEST_S
    ]
    work = sum(job.work_gpu_s for job in fit)
    part = min(1.0, load * gpus * days * DAY_S / work)
    luck = Random(1)
    return [job for job in fit if luck.random() < part]


@dataclass(slots=True)
class _Measured:
    """Made-up measurements of one holder: its GPUs, their activity, and its CPUs."""

    holder: Holder
    gpus: tuple[str, ...]
    usual: float
    begun: float
    working_s: float
    of: WorkerId | str
    cpus: float


@dataclass
class TracedDays:
    """Driver of a pool through some days.

    Attributes:
        pool: Open pool with a ``TimelyRuntime`` and the same clock.
        sent: Lines of the trace by the IDs of their jobs.
    """

    pool: Pool
    clock: FakeClock
    sent: dict[str, TraceJob] = field(default_factory=dict)
    _events: list[tuple[float, int, str, object]] = field(default_factory=list)
    _number: int = 0
    _running: dict[WorkerId, _Measured] = field(default_factory=dict)
    _benches: dict[str, _Measured] = field(default_factory=dict)
    _noticed: int = 0
    _saved_s: dict[str, float] = field(default_factory=dict)
    _measured_until: float = 0.0

    @property
    def runtime(self) -> TimelyRuntime:
        """The pool's runtime."""
        found = self.pool.runtime
        assert isinstance(found, TimelyRuntime)
        return found

    async def live(self, jobs: Sequence[TraceJob], days: float) -> None:
        """Play these days with the arrival of these jobs."""
        # Passes run after all events of an instant.
        self.pool.passes.want = lambda: None  # type: ignore[method-assign]
        await self.pool.use.report(ADMIN, UseQuery())  # the record of use begins now
        begin = self.clock.now()
        end = begin + days * DAY_S
        self._measured_until = begin
        zero = jobs[0].submit_s
        for job in jobs:
            self._at(begin + job.submit_s - zero, "submit", job)
        for at, user in bench_days(begin, end):
            self._at(at, "bench", user)
        while self._events and self._events[0][0] <= end:
            at, _, what, about = heapq.heappop(self._events)
            self._let_pass(at)
            await self._happens(what, about)
            await self._settle()
        self._let_pass(end)

    def _at(self, at: float, what: str, about: object) -> None:
        self._number += 1
        heapq.heappush(self._events, (at, self._number, what, about))

    async def _happens(self, what: str, about: object) -> None:
        if isinstance(about, TraceJob):
            _, user = whose(about.line)
            name = f"{WORDS[about.line % len(WORDS)]}-{about.line}"
            sent = await self.pool.jobs.submit(Caller(user), sleeper(gpus=about.gpus, name=name))
            self.sent[sent.id] = about
        elif isinstance(about, WorkerId):
            by = EndedBy.NOTICE if what == "leave" else EndedBy.ITSELF
            code = 143 if what == "leave" else int(self.sent[about.job].line % 12 == 0)
            if about in self.runtime.alive:
                if what == "leave":
                    self._save(about)
                self.runtime.end(about, code, by, at=self.clock.now())
        elif what == "bench":
            await self._bench(str(about))
        else:
            await self._stop(str(about))

    def _save(self, worker: WorkerId) -> None:
        """Report the checkpoint that a leaving worker has saved in this start."""
        started = self.pool.ledger.attempts(worker.job)[-1].started
        if started is None or self.sent[worker.job].line % 8 == 0:
            return
        now = self.clock.now()
        saved_s = (now - started) // SAVES_EVERY_S * SAVES_EVERY_S
        if saved_s > 0:
            self._saved_s[worker.job] = self._saved_s.get(worker.job, 0.0) + saved_s
            self.runtime.report(
                WorkerProgress(worker, now, None, None, checkpoint_at=started + saved_s)
            )

    async def _bench(self, user: str) -> None:
        try:
            lease = await self.pool.benches.reserve(HUB, LeaseRequest(user, "", "1", 1))
        except Unavailable:  # meanwhile, the borrower is asked to leave
            self._at(self.clock.now() + AGAIN_S, "bench", user)
            return
        luck = Random(f"{user} {self.clock.now()}")
        usual, hours = luck.choice([0.0, 0.1, 0.5]), luck.uniform(6, 10)
        works_s = luck.uniform(0.1, 0.8) * hours * HOUR_S
        holder = Holder(bench=lease.id, server="", user=user)
        self._benches[lease.id] = _Measured(
            holder, tuple(lease.gpus), usual, self.clock.now(), works_s, lease.id, 8
        )
        self._at(self.clock.now() + hours * HOUR_S, "stop", lease.id)

    async def _stop(self, lease: str) -> None:
        self._benches.pop(lease, None)
        await self.pool.benches.release(HUB, lease)

    async def _settle(self) -> None:
        """Run passes until one changes nothing."""
        pool = self.pool
        for _ in range(PASSES):
            await self._rest()
            before = [(job.id, job.state) for job in pool.ledger.live()]
            await pool.passes.make()
            await pool.actions.finish()
            await self._rest()
            self._see()
            if before == [(job.id, job.state) for job in pool.ledger.live()]:
                return
        raise AssertionError("passes do not come to rest")

    async def _rest(self) -> None:
        """Wait until the events of workers have been processed."""
        await asyncio.sleep(0)
        while not self.pool.watcher.idle or self.pool.actions.busy:
            await asyncio.sleep(0)

    def _see(self) -> None:
        """Schedule the ends of new workers and the exits of workers with a notice."""
        now = self.clock.now()
        runtime = self.runtime
        for worker in runtime.alive - self._running.keys():
            trace = self.sent[worker.job]
            attempt = self.pool.ledger.attempts(worker.job)[-1]
            if attempt.attempt != worker.attempt or attempt.started is None:
                continue
            project, user = whose(trace.line)
            luck = Random(trace.line)
            usual = luck.choice([0.95, 0.9, 0.85, 0.7, 0.45, 0.15])
            holder = Holder(worker.job, worker.attempt, worker.worker, user=user, project=project)
            working_s = trace.duration_s * (0.4 if luck.random() < 0.12 else 1.0)
            gpus = tuple(attempt.workers[worker.worker].gpus)
            self._running[worker] = _Measured(holder, gpus, usual, now + 90, working_s, worker, 8)
            left_s = trace.duration_s - self._saved_s.get(worker.job, 0.0)
            self._at(now + max(60.0, left_s), "end", worker)
        for worker in self._running.keys() - runtime.alive:
            del self._running[worker]
        for worker, _ in runtime.notices[self._noticed :]:
            self._at(now + SAVES_IN_S, "leave", worker)
        self._noticed = len(runtime.notices)

    # ------------------------------------------------------------------ measurements

    def _let_pass(self, at: float) -> None:
        """Advance the time to ``at``, measured minute by minute."""
        samples: list[HeldSample] = []
        workers: list[HeldWorkerSample] = []
        tick = self._measured_until
        while tick + TICK_S <= at:
            tick += TICK_S
            for one in (*self._running.values(), *self._benches.values()):
                samples.extend(_samples(one, tick))
                workers.append(_worker(one, tick))
        self.clock.pass_s(at - self.clock.now())
        if samples:
            self._measured_until = tick
            self.pool.use.telemetry.write(samples, workers)
            self.pool.metering.live.see([it for it in samples if it.sample.at > tick - 600])
        elif tick > self._measured_until:
            self._measured_until = tick


def bench_days(begin: float, end: float) -> Iterator[tuple[float, str]]:
    """Yield the times when users start their servers: on four days of five, between 8 and 11."""
    luck = Random(2)
    day = begin
    while day < end:
        for user in (user for team in TEAMS.values() for user in team):
            if luck.random() < 0.8:
                yield day + luck.uniform(8, 11) * HOUR_S, user
        day += DAY_S


def _activity(one: _Measured, at: float) -> float:
    if not one.begun <= at < one.begun + one.working_s or one.usual == 0.0:
        return 0.0
    wave = (at // 600 * 2654435761 % 1000) / 1000
    if isinstance(one.of, str) and wave < 0.6:
        return 0.0  # the user reads and thinks
    return max(0.0, min(1.0, one.usual * (0.85 + 0.25 * wave)))


def _samples(one: _Measured, at: float) -> Iterable[HeldSample]:
    active = _activity(one, at)
    memory = 2.0 if one.usual == 0.0 else 12.0 + 60.0 * one.usual
    for gpu in one.gpus:
        yield HeldSample(
            GpuSample(
                at, TICK_S, gpu, activity=active, sm_activity=0.6 * active,
                memory_used_gib=memory, memory_total_gib=80.0,
                power_w=80 + 300 * active, energy_j=TICK_S * (80 + 300 * active),
                temperature_c=35 + 30 * active,
            ),
            one.holder,
        )  # fmt: skip


def _worker(one: _Measured, at: float) -> HeldWorkerSample:
    cpu_s = TICK_S * (0.2 + 3 * _activity(one, at))
    sample = WorkerSample(one.of, at, TICK_S, cpu_s, one.cpus, 6.0, 9.0, 0, 0)
    return HeldWorkerSample(sample, one.holder)


def newest(pool: Pool, caller: Caller, state: State) -> Job:
    """Return the newest job in a state that the caller may see."""
    return pool.jobs.select(caller, all=True, state=state, limit=1)[0]
