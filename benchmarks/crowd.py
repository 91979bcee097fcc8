"""A service with a large pool behind it, for other benchmarks: the real store, core and API.

N nodes of 8 GPUs, all held by 4N running jobs of twenty teams that each hold their quota; 10N jobs
wait. Running jobs end one after the other, so that passes follow each other and other jobs start.
Only the workers are simulated: a started job runs until it is its turn to end.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import checkout  # noqa: F401
import msgspec
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application

from benchpool_scheduler.api import Api
from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.configuration.settings import Build, ProjectSettings
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.core.model import Project, ProjectName
from benchpool_scheduler.hub import StaticDirectory
from benchpool_scheduler.runtime import Device, EndedBy, Launch, Notice, WorkerId
from benchpool_scheduler.runtime.simulated import SimulatedRuntime
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.store.records import (
    AddJob,
    AttemptRecord,
    Change,
    JobRecord,
    SaveAttempt,
    WorkerRecord,
)
from benchpool_scheduler.store.sqlite import SqliteStore
from benchpool_support.serving import TokenIdentity

TEAMS = tuple(f"team{number}" for number in range(20))
PEOPLE = tuple(f"{team}-{number}" for team in TEAMS for number in range(5))
ADMINISTRATORS = ("root", *(f"root{number}" for number in range(9)))
PREFIX = "/services/benchpool/"
CHUNK = 2000
SUBMISSION = msgspec.json.encode(JobSubmission(entry=CommandEntry(["train"])))


def configuration(nodes: int) -> Configuration:
    """Return a configuration of four divisions of five teams, whose quotas are all GPUs."""
    quota = 8 * nodes // len(TEAMS)
    parents = [
        ProjectSettings(Project(ProjectName(f"division{n}"), quota=5 * quota)) for n in range(4)
    ]
    teams = [
        ProjectSettings(
            Project(ProjectName(team), ProjectName(f"division{number // 5}"), quota=quota),
            members=tuple(PEOPLE[5 * number : 5 * number + 5]),
        )
        for number, team in enumerate(TEAMS)
    ]
    return Configuration(build=Build(reserve=0), projects=(*parents, *teams))


def devices(nodes: int) -> tuple[Device, ...]:
    """Return all GPUs."""
    return tuple(
        Device(f"n{node}/{index}", index, "A100", f"n{node}", 81920, simulated=True)
        for node in range(nodes)
        for index in range(8)
    )


def jobs(nodes: int, now: float) -> Iterator[tuple[Change, ...]]:
    """Yield the store's changes: for each node 4 running jobs of 2 GPUs and 10 waiting jobs."""
    for number in range(4 * nodes):
        record = _job(number, f"run{number}", 2, 60, now - 7200 - number % 9999, JobState.RUNNING)
        node, first = f"n{number // 4}", number % 4 * 2
        worker = WorkerRecord(0, node, (f"{node}/{first}", f"{node}/{first + 1}"), now - 3600)
        attempt = AttemptRecord(record.id, 1, now - 3600, (worker,), started=now - 3600)
        yield AddJob(record, SUBMISSION), SaveAttempt(attempt)
    for number in range(10 * nodes):
        gpus, priority = (1, 2, 4, 8)[number // 20 % 4], (20, 40, 60)[number // 80 % 3]
        at = now - 7000 + number * 6000 / (10 * nodes)
        yield (AddJob(_job(number, f"wait{number}", gpus, priority, at), SUBMISSION),)


def _job(
    number: int,
    name: str,
    gpus: int,
    priority: int,
    at: float,
    state: JobState = JobState.QUEUED,
) -> JobRecord:
    team = TEAMS[number % len(TEAMS)]
    runs = state is JobState.RUNNING
    return JobRecord(
        id=name.ljust(26, "x"),
        name=name,
        project=team,
        user=f"{team}-{number // 20 % 5}",
        state=state,
        submitted=at,
        queued_since=at,
        spec=JobSpec(gpus=gpus, priority=priority),
        attempt=1 if runs else 0,
        started=at + 60 if runs else None,
    )


class Workers(SimulatedRuntime):
    """Workers that run until the benchmark ends them, the oldest first."""

    def __init__(self, gpus: Sequence[Device]) -> None:
        super().__init__(gpus)
        self._oldest: deque[WorkerId] = deque()
        self.ended = self.started = 0

    def end_one(self) -> None:
        """End the oldest worker."""
        self.ended += 1
        self.end(self._oldest.popleft(), at=time.time())

    async def open(self, expected: Sequence[WorkerId]) -> None:
        """Mark all expected workers as running."""
        self.alive.update(expected)
        self._oldest.extend(expected)

    async def run_worker(self, launch: Launch) -> None:
        """Start the worker immediately."""
        self.started += 1
        self._oldest.append(launch.worker)
        self.begin(launch.worker, time.time())

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        """End the worker immediately."""
        self._oldest.remove(worker)
        self.end(worker, 143, EndedBy.NOTICE, time.time())


async def serve(state: Path, nodes: int, every_s: float) -> None:
    """Serve until the line ``stop`` arrives; ``go`` starts to end jobs.

    It prints a line of JSON when ready, and one with the figures of the passes at the end.
    """
    await _fill(state, nodes)
    workers = Workers(devices(nodes))
    pool = Pool(
        SqliteStore(state / "scheduler"),
        workers,
        configuration(nodes),
        state=state,
        directory=StaticDirectory(),
        base_url=PREFIX.rstrip("/"),
    )
    await pool.open()
    people = {name: Caller(name) for name in PEOPLE}
    people |= {name: Caller(name, admin=True) for name in ADMINISTRATORS}
    api = Api(pool, TokenIdentity(people))
    server, sockets = HTTPServer(Application(api.rules(PREFIX))), bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    await _quiet(pool)
    _print({"url": f"http://127.0.0.1:{sockets[0].getsockname()[1]}{PREFIX}api/v1"})
    await _line("go")
    before, cost = pool.figures.read().passes, pool.figures.read().pass_s
    ending = asyncio.create_task(_end_jobs(workers, every_s))
    await _line("stop")
    ending.cancel()
    after = pool.figures.read()
    passes = after.passes - before
    _print(
        {
            "passes": passes,
            "mean_pass_ms": (after.pass_s - cost) / max(1, passes) * 1000,
            "ended": workers.ended,
            "started": workers.started,
        }
    )
    server.stop()
    await pool.close()


async def _fill(state: Path, nodes: int) -> None:
    store = SqliteStore(state / "scheduler")
    await store.open()
    chunk: list[Change] = []
    for changes in jobs(nodes, time.time()):
        chunk.extend(changes)
        if len(chunk) >= CHUNK:
            await store.commit(*chunk)
            chunk = []
    await store.commit(*chunk)
    await store.close()


async def _quiet(pool: Pool) -> None:
    """Wait for the first pass, which fills the caches of later ones."""
    while pool.figures.read().passes < 1:
        await asyncio.sleep(0.2)


async def _end_jobs(workers: Workers, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        workers.end_one()


async def _line(wanted: str) -> None:
    line = await asyncio.to_thread(sys.stdin.readline)
    assert line.strip() == wanted, line


def _print(facts: dict[str, object]) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
