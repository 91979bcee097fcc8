"""``kill -9`` at random moments on one machine, while users send jobs and GPUs are lent.

Every process of benchpool is killed: ``benchpool up``, the Hub, its proxy, the scheduler and its
keeper, the supervisors of workers, and notebook servers. ``benchpool up`` is restarted, as a user
would do. The workers' own records (``benchpool_support.hands``), not the service, show that no GPU
was held twice and no job ran twice.

``BENCHPOOL_KILLS=1000`` produces the figure of docs/performance.md. ``BENCHPOOL_SEED`` selects
another course of events.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from benchpool_cluster.kills import storm
from benchpool_scheduler.accounting.division import divide
from benchpool_scheduler.accounting.gpu_intervals import GpuInterval
from benchpool_scheduler.client import Client, Credentials
from benchpool_scheduler.contract import (
    ENDED,
    Attempt,
    CommandEntry,
    Job,
    JobSubmission,
    State,
)
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.telemetry import Database
from benchpool_scheduler.telemetry.sqlite_storage import SqliteFile
from benchpool_support import hands
from benchpool_support.findings import Finding, Sent
from benchpool_support.hands import WorkerStatements
from benchpool_support.killable import Machine, words_of
from benchpool_support.senders import Sender
from benchpool_support.waiting import until
from benchpool_support.workstation import RunningWorkstation

KILLS = int(os.environ.get("BENCHPOOL_KILLS", "8"))
SEED = int(os.environ.get("BENCHPOOL_SEED", "3"))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(0)]
"""No fixed timeout, for slow machines: a wait ends when there is no progress."""

GAP_S = (0.05, 2.0)
"""Interval between two moments, in seconds; shorter and longer than a restart."""
AT_ONCE = 4
"""Maximum number of kills per moment.

The cost of a kill is the restart after it, and one restart serves several kills.
"""
MOST_UNACCOUNTED_S = 10.0
"""Largest accepted difference of the accounts, in seconds: one sample of a GPU."""
STORM_S = 300.0
"""Retry timeout of clients while parts are killed, in seconds."""
LEAVE_S = 60.0
"""Timeout for a process to show progress after a stop request, in seconds."""
CONFIGURATION = """\
version: 1
build: {users: {susan: 1, joe: 1, jemma: 1}}
projects:
  - {name: research, quota: 6}
  - {name: susan, parent: research, quota: 3, members: [susan]}
  - {name: joe, parent: research, quota: 3, members: [joe]}
policy: {grace_s: 5, preemptions_per_hour: 1000, preemptions_per_day: 24000}
"""
KINDS = {"scheduler": 9, "supervisor": 9, "proxy": 2, "keeper": 1, "server": 2, "hub": 2, "up": 1}
"""Killed parts with their relative frequency."""
PEOPLE = ("susan", "joe")
SHAPES: tuple[dict[str, Any], ...] = (
    {"gpus": 1},
    {"gpus": 2},
    {"gpus": 4},
    {"gpus": 1, "workers": 2},
)


@dataclass
class Load:
    """Load of the users: jobs for the 6 GPUs of the pool, and a notebook that starts and stops.

    Attributes:
        wanted: Steps and exit code of each job ever sent, by key.
        cancelled: Jobs with a cancel request, whatever its answer.
    """

    machine: Machine
    testimony: Path
    chance: random.Random
    wanted: dict[str, tuple[int, int]] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    paused: int = 0
    notebooks: int = 0
    _senders: list[Sender] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _enough: threading.Event = field(default_factory=threading.Event)

    def begin(self, up: RunningWorkstation) -> None:
        """Start all senders and threads."""
        for name in (*PEOPLE, "jemma"):
            up.add_user(name)
        settings = self.machine.state / "homes" / "jemma" / ".jupyter"
        settings.mkdir(parents=True)
        text = hands.server_configuration(self.testimony)
        (settings / "jupyter_server_config.py").write_text(text)
        address = f"http://127.0.0.1:{self.machine.port}/services/benchpool"
        for number, name in enumerate(PEOPLE):
            client = Client(Credentials(address, up.token_of(name)), patience_s=STORM_S)
            chance = random.Random(SEED + number)
            self._senders.append(Sender(name, client, self._job, chance, pause_s=(0.2, 3.0)))
        self._threads = [
            threading.Thread(target=act, daemon=True) for act in (self._meddle, self._study)
        ]
        for sender in self._senders:
            sender.start()
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop all senders and threads, and wait for their last requests."""
        self._enough.set()
        for sender in self._senders:
            sender.end(4 * STORM_S)
        for thread in self._threads:
            thread.join(STORM_S)

    @property
    def sent(self) -> dict[str, str]:
        """Return the ID of each accepted job, by key."""
        return {key: id_ for sender in self._senders for key, id_ in sender.sent.items()}

    @property
    def refused(self) -> list[str]:
        """Return all other answers."""
        return [text for sender in self._senders for text in sender.refused]

    @property
    def plans(self) -> dict[str, Sent]:
        """Return the submissions by job ID."""
        ids = self.sent.items()
        return {id_: Sent(*self._plan(key), id_ in self.cancelled) for key, id_ in ids}

    @staticmethod
    def _plan(key: str) -> tuple[int, int]:
        drawn = random.Random(key)
        return drawn.randrange(20, 400), 3 if drawn.random() < 0.1 else 0

    def _job(self, chance: random.Random) -> JobSubmission:
        name = threading.current_thread().name
        sender = next(one for one in self._senders if one.name == name)
        steps, code = self._plan(f"{name}-{len(sender.sent) + len(sender.refused)}")
        argv = [sys.executable, "-c", hands.WORKER, str(self.testimony), str(steps), str(code)]
        return JobSubmission(entry=CommandEntry(argv), **chance.choice(SHAPES))

    def _meddle(self) -> None:
        """Cancel some jobs, pause and resume others."""
        while not self._enough.wait(self.chance.uniform(2.0, 6.0)):
            sender = self.chance.choice(self._senders)
            ids = list(sender.sent.values())[-5:]
            if not ids:
                continue
            id_ = self.chance.choice(ids)
            with suppress(BenchpoolError):  # already ended or paused
                if self.chance.random() < 0.3:
                    self.cancelled.add(id_)
                    sender.client.cancel(id_)
                else:
                    sender.client.pause(id_)
                    self.paused += 1
                    self._enough.wait(self.chance.uniform(0.0, 2.0))
                    sender.client.resume(id_)

    def _study(self) -> None:
        """Start and stop a notebook server with a GPU."""
        while not self._enough.wait(self.chance.uniform(0.5, 2.0)):
            up = self.machine.up
            assert up is not None
            with suppress(httpx.HTTPError, ValueError, AssertionError, KeyError):
                if up.ask_server("jemma", gpus=1).status_code in (201, 202):
                    up.wait_server("jemma")
                    self.notebooks += 1
                    self._enough.wait(self.chance.uniform(0.0, 3.0))
                up.stop_server("jemma")


def test_gpu_assigned_twice_is_detected(tmp_path: Path) -> None:
    """Check the test rig: it must detect two workers on one GPU."""
    folder = tmp_path / "testimony"
    folder.mkdir()

    def worker(job: str) -> subprocess.Popen[bytes]:
        about = {"BENCHPOOL_JOB_ID": job, "NODE_RANK": "0", "BENCHPOOL_ATTEMPT": "1"}
        environ = {**os.environ, **about, "CUDA_VISIBLE_DEVICES": "GPU-a"}
        return subprocess.Popen(
            [sys.executable, "-c", hands.WORKER, str(folder), "100000", "0"], env=environ
        )

    def begun(job: str) -> bool:
        return job in WorkerStatements.of(folder).begun

    first = worker("first")
    try:
        until(lambda: begun("first"), "the first holds its GPU")
        second = worker("second")
        until(lambda: begun("second"), "the second has looked")
        second.kill()
        second.wait()
        assert hands.still_held(folder) == ["GPU-a", "job-first-0"]
    finally:
        first.kill()
        first.wait()
    assert [one["two"] for one in WorkerStatements.of(folder).two] == ["GPU-a"]
    assert hands.still_held(folder) == []


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    one = Machine(tmp_path, CONFIGURATION, random.Random(SEED))
    try:
        yield one
    finally:
        one.end()
        for left in one.processes():
            with suppress(psutil.Error):
                left.kill()


def test_random_kills_do_not_lose_or_duplicate_jobs(
    machine: Machine,
) -> None:
    print(f"seed {SEED}")
    testimony = machine.folder / "testimony"
    testimony.mkdir()
    load = Load(machine, testimony, random.Random(SEED + 100))
    load.begin(machine.start())
    began, kinds = time.monotonic(), [kind for kind, n in KINDS.items() for _ in range(n)]
    killed = storm(
        machine.kill,
        machine.settle,
        kinds,
        machine.chance,
        count=KILLS,
        gap_s=GAP_S,
        at_once=AT_ONCE,
    )
    stormed = time.monotonic() - began
    machine.settle()
    load.end()
    ended, parked = all_ended(machine, load)
    jobs = [job for job, _ in ended]
    finding = Finding()
    statements = WorkerStatements.of(testimony)
    finding.judge(load.plans, ended, statements, machine.killed_of, PEOPLE)
    unbalanced = books(machine)
    finding.orphans = left_over(machine, testimony)
    attempts = Counter(job.attempt for job in jobs)
    print(f"{killed.total()} kills in {stormed:.0f} s, {dict(killed)}: {finding}")
    print(f"{finding.unseen} ends were not on record yet when a supervisor was killed")
    print(
        f"{len(load.sent)} jobs accepted, {sum(job.attempt for job in jobs)} attempts "
        f"{dict(sorted(attempts.items()))}, {sum(len(job.preemptions) for job in jobs)} "
        f"preemptions, {len(load.cancelled)} cancelled, {load.paused} pauses, {len(parked)} "
        f"parked, {load.notebooks} notebooks, {machine.starts} starts of benchpool up"
    )
    assert load.refused == []
    assert unbalanced == []
    finding.hold()


def all_ended(machine: Machine, load: Load) -> tuple[list[tuple[Job, Sequence[Attempt]]], set[str]]:
    """Wait until every job has ended; return the jobs with attempts, and the IDs of parked jobs.

    A job lost five times in a row is parked by design and waits for its user.
    """
    assert machine.up is not None
    admin = Client(
        Credentials(
            f"http://127.0.0.1:{machine.port}/services/benchpool", machine.up.ready["admin_token"]
        ),
        patience_s=STORM_S,
    )
    parked: set[str] = set()
    seen: list[Job] = []

    def ended() -> bool:
        seen[:] = admin.jobs(all_=True, limit=10_000)
        for job in seen:
            if job.state is State.PAUSED:
                parked.add(job.id)
                admin.resume(job.id)
        return all(job.state in ENDED for job in seen)

    def course() -> object:
        return {job.id: (job.state, job.attempt, job.progress) for job in seen}

    until(ended, "every job has ended", progress=course)
    known = set(load.sent.values())
    return [(job, admin.job(job.id).attempts) for job in seen], parked & known


def books(machine: Machine) -> list[str]:
    """Return the GPUs whose recorded use does not add up to the elapsed time.

    Since its record began, each GPU has exactly one holder at every instant, within one sample.
    """
    database = Database(SqliteFile(machine.state / "scheduler"), time.time)
    of_gpu: dict[str, list[GpuInterval]] = {}
    for one in database.occupancies(0.0, time.time()):
        of_gpu.setdefault(one.gpu, []).append(one)
    database.close()
    wrong = [] if of_gpu else ["nothing is recorded"]
    for gpu, intervals in of_gpu.items():
        intervals.sort(key=lambda one: one.begin)
        begin, end = intervals[0].begin, intervals[-1].end
        entries = divide(intervals, (), (), begin, end)
        seconds = sum(sum(entry.seconds.values()) for entry in entries)
        if abs(seconds - (end - begin)) > MOST_UNACCOUNTED_S:
            wrong.append(f"{gpu}: {seconds:.3f} s of {end - begin:.3f} s are accounted for")
    return wrong


def left_over(machine: Machine, testimony: Path) -> list[str]:
    """End everything as users do; return the GPUs and processes that remain."""
    assert machine.up is not None
    machine.up.clear()
    held: list[str] = []
    with suppress(AssertionError):
        until(
            lambda: not hands.still_held(testimony),
            "nothing is held",
            LEAVE_S,
            progress=machine.progress,
        )
    held = [f"{name} is held" for name in hands.still_held(testimony)]
    machine.end()
    with suppress(AssertionError):
        until(lambda: not machine.processes(), "nothing runs", LEAVE_S, progress=machine.progress)
    return held + [f"{one.pid} runs: {words_of(one)}" for one in machine.processes()]
