"""A real service in virtual time that is sent the jobs of a recorded trace, day after day.

Submissions, passes, preemptions and ends are the service's own; when a job comes, how many GPUs it
asks for and how long it runs are the trace's. A trace knows neither people nor what GPUs did, so
these are made up: who sends is ``traced_use.whose``, how active a job is comes from its line. Jobs
save every half hour, one in eight never; one that was preempted goes on from what it saved. Benches
are held by day.
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
"""So long after its notice a worker ends."""

AGAIN_S = 30.0
"""So long after a start that found no free GPU the next one is tried."""

LONGEST_S, SHORTEST_S = 3 * DAY_S, 300
LARGEST = 8
SAVES_EVERY_S = 1800.0
PASSES = 50
"""An instant at which more passes change something does not come to rest."""

WORDS = ("resnet", "whisper", "diffusion", "folds", "grasp", "vit", "llama-lora", "unet")


class TimelyRuntime(ScriptedRuntime):
    """Its workers begin when they are launched, and leave some seconds after a notice."""

    def __init__(self, gpus: Sequence[Device], clock: FakeClock) -> None:
        super().__init__(gpus, start_at_once=False)
        self._clock = clock

    async def run_worker(self, launch: Launch) -> None:
        """Let it run."""
        await super().run_worker(launch)
        self.begin(launch.worker, self._clock.now())


def chosen(
    jobs: Sequence[TraceJob], day: float, days: float, gpus: int, load: float = 1.0
) -> list[TraceJob]:
    """Return every so many-th job of some days of a trace, so that they are work for so many GPUs.

    Args:
        load: The work of what is chosen as a part of what the GPUs can do in these days.
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
    """What is made up of one holder: its GPUs, how active they are, and its processors."""

    holder: Holder
    gpus: tuple[str, ...]
    usual: float
    begun: float
    working_s: float
    of: WorkerId | str
    cpus: float


@dataclass
class TracedDays:
    """Drives a pool through some days.

    Attributes:
        pool: Open, with a ``TimelyRuntime`` and the same clock.
        sent: Lines of the trace by the ids of their jobs.
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
        """The workers."""
        found = self.pool.runtime
        assert isinstance(found, TimelyRuntime)
        return found

    async def live(self, jobs: Sequence[TraceJob], days: float) -> None:
        """Let these days go by, in which these jobs come."""
        # Passes are made when all of an instant has happened.
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
        """Tell what a worker that leaves had saved in this start."""
        started = self.pool.ledger.attempts(worker.job)[-1].started
        if started is None or self.sent[worker.job].line % 8 == 0:
            return
        now = self.clock.now()
        saved_s = (now - started) // SAVES_EVERY_S * SAVES_EVERY_S
        if saved_s > 0:
            self._saved_s[worker.job] = self._saved_s.get(worker.job, 0.0) + saved_s
            self.runtime.say(
                WorkerProgress(worker, now, None, None, checkpoint_at=started + saved_s)
            )

    async def _bench(self, user: str) -> None:
        try:
            lease = await self.pool.benches.reserve(HUB, LeaseRequest(user, "", "1", 1))
        except Unavailable:  # who borrows it is asked to leave meanwhile
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
        """Make passes until one changes nothing."""
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
        """Wait until what workers told has been taken."""
        await asyncio.sleep(0)
        while not self.pool.watcher.idle or self.pool.actions.busy:
            await asyncio.sleep(0)

    def _see(self) -> None:
        """Note who began, and when they end; who was noticed leaves."""
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

    # ------------------------------------------------------------------ what is measured

    def _let_pass(self, at: float) -> None:
        """Let time pass until then, measured minute by minute."""
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
    """Yield when people start their servers: on four days of five, between 8 and 11."""
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
        return 0.0  # somebody reads, and thinks
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
    """Return the newest job in a state that somebody may see."""
    return pool.jobs.select(caller, all=True, state=state, limit=1)[0]
