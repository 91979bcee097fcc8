"""A stage for pages: a pool whose jobs and GPUs are set by hand, served over real HTTP.

The answers of the real pool are tested with the real pool. The stage is for rare states: every
state at once, hostile names, thousands of rows, a service that is not ready.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application

from benchpool_scheduler import contract
from benchpool_scheduler.api import Api
from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract import GpuState, State
from benchpool_scheduler.contract.actions import ActionReason
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.states import Intent, JobState
from benchpool_scheduler.errors import BenchpoolError, InvalidInput, NotFound, Refused
from benchpool_scheduler.runtime import LogChunk, WorkerId
from benchpool_scheduler.service import Caller, Clock, FeedEvent, Pool
from benchpool_scheduler.service.lifecycle.job_actions import actions_of, fixed_of
from benchpool_scheduler.service.views.broadcast import Listener
from benchpool_scheduler.service.views.job_views import SPEC_FIELDS
from benchpool_scheduler.store.records import JobRecord, StopIntent
from benchpool_scheduler.web import routes
from benchpool_support.page_readers import CookieIdentity
from benchpool_support.pool_ports import PoolPort
from benchpool_support.staged_curves import StagedCurves
from benchpool_support.staged_parts import StagedParts, StagedTrail

PREFIX = "/services/benchpool/"
NOW = datetime(2026, 11, 21, 9, 50, tzinfo=UTC)


def job(name: str, state: State = State.QUEUED, **facts: Any) -> contract.Job:
    """Return a job with plain facts; its ID is made from its name."""
    letters = "".join(sign for sign in name.lower() if sign.isascii() and sign.isalnum())
    own: dict[str, Any] = {
        "id": (letters + "q7x2m4k9w3n8p5t6v1z0r4y2b7")[:26],
        "name": name,
        "project": "susan",
        "user": "susan",
        "state": state,
        "reason": None,
        "gpus": 1,
        "workers": 1,
        "min_workers": 1,
        "priority": 50,
        "preemptible": True,
        "over_quota": False,
        "attempt": 0 if state is State.QUEUED else 1,
        "submitted": datetime.now(UTC) - timedelta(minutes=20),
        "started": None if state is State.QUEUED else datetime.now(UTC) - timedelta(minutes=12),
        "ended": None,
        "exit_code": None,
        "progress": None,
        "estimated_start": None,
        "preemptions": [],
        "url": "",
        "actions": _actions(state),
    }
    return contract.Job(**(own | facts))


def _actions(state: State) -> list[str]:
    """Return the actions that the scheduler would allow; a pausing job was preempted."""
    return actions_of(_record(state))


def _asked(job: contract.Job) -> JobSpec:
    return JobSpec(**{name: getattr(job, name) for name in SPEC_FIELDS})


def _record(state: State, least: int | None = None) -> JobRecord:
    preempted = StopIntent(Intent.PREEMPT, 0.0, 30.0) if state is State.PAUSING else None
    spec = JobSpec(min_workers=least)
    facts = ("", "", "susan", "susan", JobState(state.value), 0.0, 0.0)
    return JobRecord(*facts, spec, stop_request=preempted)


def reason(text: str, remedy: str = "", code: str = "pool-full") -> contract.Reason:
    """Return a reason for waiting."""
    return contract.Reason(code, text, {}, remedy)


def gpu(index: int, state: GpuState = GpuState.FREE, **facts: Any) -> contract.Gpu:
    """Return a simulated A100."""
    own: dict[str, Any] = {
        "uuid": f"GPU-sim-{facts.get('node', 'lab1')}-{index}",
        "index": index,
        "model": "A100",
        "node": "lab1",
        "simulated": True,
        "state": state,
        "memory_mib": 81920,
        "user": None,
        "job": None,
        "server": None,
        "note": None,
    }
    return contract.Gpu(**(own | facts))


MOVES = {"pause": State.PAUSED, "resume": State.QUEUED, "cancel": State.CANCELLED}
"""State of a job immediately after an action."""


@dataclass
class StagedPool(StagedCurves):
    """Reads and actions of ``service.Pool`` over hand-made facts."""

    held_jobs: dict[str, contract.Job] = field(default_factory=dict)
    gpus: list[contract.Gpu] = field(default_factory=list)
    projects: list[contract.ProjectQuota] = field(default_factory=list)
    held_leases: list[contract.Lease] = field(default_factory=list)
    waiting: list[contract.InLine] = field(default_factory=list)
    build_quotas: Mapping[str, int] = field(default_factory=dict)
    starts: dict[str, list[contract.Attempt]] = field(default_factory=dict)
    usages: dict[str, contract.JobUsage] = field(default_factory=dict)
    least: dict[str, int] = field(default_factory=dict)
    log_bytes: dict[str, bytes] = field(default_factory=dict)
    log_ended: bool = False
    text: str = "The pool."
    problems: list[str] = field(default_factory=list)
    would_start_with: str | None = None
    horizons: list[contract.EstimateHorizon] = field(default_factory=list)
    away: BenchpoolError | None = None
    trail: StagedTrail = field(default_factory=lambda: StagedTrail())
    asked: list[tuple[str, str, str, str | None]] = field(default_factory=list)
    configuration: Configuration = field(default_factory=Configuration)
    changes: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def add(self, *jobs: contract.Job) -> None:
        """Add jobs to the stage."""
        self.held_jobs.update({one.id: one for one in jobs})

    async def becomes(self, job_id: str, **facts: Any) -> None:
        """Change a job and notify the readers of events."""
        if "state" in facts:
            facts = {"actions": _actions(facts["state"]), **facts}
        self.held_jobs[job_id] = msgspec.structs.replace(self.held_jobs[job_id], **facts)
        async with self.changed:
            self.changes += 1
            self.changed.notify_all()

    def pool(self) -> Pool:
        """Return this stage with the type that the pages take."""
        plays = (self, self, self, self, self, self, self.trail, self)
        parts: PoolPort = StagedParts(*plays, in_force=lambda: self.configuration)
        # The pages are typed to take a whole pool; they and their API use only these parts.
        return cast(Pool, parts)

    # ------------------------------------------------------------------ reads

    def accuracy(self) -> contract.StartEstimates:
        """Return the accuracy of the estimated starts."""
        return contract.StartEstimates(0.8, self.horizons)

    def _sees(self, caller: Caller, one: contract.Job) -> bool:
        return caller.admin or one.user == caller.name

    def select(
        self,
        caller: Caller,
        *,
        all: bool = False,
        project: str | None = None,
        state: State | None = None,
        limit: int = 1000,
        **more: Any,
    ) -> list[contract.Job]:
        """Return jobs, newest first."""
        if self.away is not None:
            raise self.away
        seen = [one for one in self.held_jobs.values() if self._sees(caller, one)]
        seen.sort(key=lambda one: one.submitted, reverse=True)
        query = contract.JobsQuery(project=project, **more)
        chosen = [
            one
            for one in seen
            if (state is None or one.state is state)
            and query.admits(one.project, _asked(one))
            and query.finds(one.name, one.id, one.user, one.project, *one.tags)
            and query.reason in (None, one.reason and one.reason.code)
        ]
        return chosen[query.offset : query.offset + limit]

    def detail(self, caller: Caller, job: str) -> contract.JobDetail:
        """Return a job by ID or prefix."""
        for one in self.held_jobs.values():
            if one.id.startswith(job) and self._sees(caller, one):
                least = one.min_workers if one.min_workers < one.workers else None
                fixed = fixed_of(_record(one.state, self.least.get(one.id, least)))
                starts = self.starts.get(one.id, [])
                usage = self.usages.get(one.id)
                return contract.JobDetail(one, starts, fixed=fixed, usage=usage)
        raise NotFound(f"There is no job {job} that you may see: benchpool jobs lists yours.")

    def attempts(self, caller: Caller, job: str) -> list[contract.Attempt]:
        """Return the starts of a job."""
        return self.detail(caller, job).attempts

    def why(self, caller: Caller, job: str) -> contract.Why:
        """Explain why a job waits."""
        one = self.detail(caller, job).job
        return contract.Why(one.id, one.reason, one.estimated_start, self.would_start_with)

    async def of(self, user: str) -> list[contract.FilesQuota]:
        """Return the size of a user's files."""
        return [contract.FilesQuota("results", 3 * 2**29, 20 * 2**30)]

    async def sizes(self, caller: Caller, job: str) -> dict[str, int] | None:
        """Return None, because no job on the stage has files."""
        return {}

    async def discard(self, caller: Caller, job: str, asked: contract.JobDiscard) -> str:
        """Delete nothing."""
        return job

    def kept(self) -> str:
        """Return the retention of finished jobs."""
        return "kept 30 days"

    def status(self, caller: Caller, *, gpus: bool = True) -> contract.Status:
        """Return the pool, with the names that the caller may see."""
        shown = [
            one
            if caller.admin or one.user == caller.name
            else msgspec.structs.replace(one, user=None, job=None, server=None)
            for one in self.gpus
        ]
        states = [one.state for one in self.held_jobs.values()]
        return contract.Status(
            text=self.text,
            simulated=any(one.simulated for one in self.gpus),
            gpus=shown,
            counts={one: sum(g.state is one for g in self.gpus) for one in GpuState},
            projects=self.projects,
            queue_length=states.count(State.QUEUED),
            running=sum(one in (State.STARTING, State.RUNNING, State.PAUSING) for one in states),
            health=contract.Health(not self.problems, 1204, 3.1, self.problems),
            bench_line=len(self.waiting),
        )

    def line(self, caller: Caller) -> list[contract.InLine]:
        """Return the entries of the bench queue that the caller may see."""
        return [one for one in self.waiting if caller.admin or one.user == caller.name]

    def leases(self, caller: Caller, user: str | None = None) -> list[contract.Lease]:
        """Return the leases that the caller may see."""
        return [one for one in self.held_leases if caller.admin or one.user == caller.name]

    def quota(self, caller: Caller, user: str | None = None) -> contract.Quota:
        """Return the build quota of a user."""
        name = user or caller.name
        own = [one for one in self.held_leases if one.user == name]
        quota = self.build_quotas.get(name, 0)
        held = [contract.HeldBuild(one.server, one.gpus) for one in own]
        free = quota - sum(len(one.gpus) for one in own)
        return contract.Quota(
            name, contract.BuildQuota(quota, f"set for user {name}", held, free), []
        )

    async def read(
        self,
        caller: Caller,
        job: str,
        *,
        attempt: int | None = None,
        worker: int = 0,
        offset: int = 0,
        limit: int = 65536,
    ) -> LogChunk:
        """Return a piece of the log."""
        data = self.log_bytes.get(self.detail(caller, job).job.id, b"")
        start = max(0, len(data) + offset) if offset < 0 else offset
        return LogChunk(start, data[start : start + limit], self.log_ended)

    def which(
        self, caller: Caller, job: str, *, attempt: int | None = None, worker: int = 0
    ) -> WorkerId:
        """Return the worker whose log is requested."""
        return WorkerId(self.detail(caller, job).job.id, attempt or 1, worker)

    async def wait(
        self,
        caller: Caller,
        job: str,
        *,
        attempt: int | None = None,
        worker: int = 0,
        offset: int = 0,
        timeout_s: float = 15.0,
    ) -> bool:
        """Wait until the log has more data."""
        try:
            async with asyncio.timeout(timeout_s), self.changed:
                await self.changed.wait_for(lambda: len(self.log_bytes.get(job, b"")) > offset)
        except TimeoutError:
            return False
        return True

    async def write_log(self, job_id: str, data: bytes) -> None:
        """Append data to a job's log."""
        async with self.changed:
            self.log_bytes[job_id] = self.log_bytes.get(job_id, b"") + data
            self.changed.notify_all()

    async def follow(self, caller: Caller, after: int | None = None) -> AsyncIterator[FeedEvent]:
        """Yield one event per change from now on."""
        seen = self.changes if after is None else after
        while True:
            async with self.changed:
                await self.changed.wait_for(lambda: self.changes > seen)  # noqa: B023
            seen = self.changes
            yield FeedEvent(seen, "job", b"{}")

    # ------------------------------------------------------------------ actions

    @contextmanager
    def to(self, listener: Listener, caller: Caller, after: int | None = None) -> Iterator[None]:
        """Send the changes to a listener one by one."""

        async def forward() -> None:
            async for event in self.follow(caller, after):
                listener.take([event])

        task = asyncio.create_task(forward())
        try:
            yield
        finally:
            task.cancel()

    async def act(
        self, caller: Caller, job: str, action: str, body: msgspec.Struct | None = None
    ) -> contract.Job:
        """Move the job to the action's state immediately, or apply the fields of the body."""
        if body is None:
            raise InvalidInput(f"{action} takes a body.")
        if action in MOVES and isinstance(body, ActionReason):
            return await self._move(action, caller, job, body.reason, MOVES[action])
        one = self.detail(caller, job).job
        wanted = msgspec.structs.asdict(body)
        given = {key: value for key, value in wanted.items() if value is not None}
        self.asked.append((action, caller.name, one.id, str(given)))
        await self.becomes(one.id, **given)
        return self.held_jobs[one.id]

    def submission(self, caller: Caller, job: str) -> contract.JobSubmission:
        """Return a possible submission of a job; ``least`` is its minimum of workers."""
        one = self.detail(caller, job).job
        entry = contract.CommandEntry(["true"])
        return contract.JobSubmission(
            entry, workers=one.workers, min_workers=self.least.get(one.id)
        )

    async def _move(
        self, verb: str, caller: Caller, job_id: str, why: str | None, state: State
    ) -> contract.Job:
        one = self.detail(caller, job_id).job
        if one.state in (State.SUCCEEDED, State.FAILED, State.CANCELLED):
            raise Refused(f"{one.name} is {one.state} already: there is nothing to {verb}.")
        self.asked.append((verb, caller.name, one.id, why))
        await self.becomes(one.id, state=state)
        return self.held_jobs[one.id]


def application(
    pool: Pool,
    people: Mapping[str, Caller],
    identify: Callable[[Mapping[str, Caller]], CookieIdentity] = CookieIdentity,
    clock: Clock | None = None,
) -> Application:
    """Return API and dashboard over a pool without a Hub; pages take the time from ``clock``."""
    identity = identify(people)
    api = Api(pool, identity)
    return Application([*api.rules(PREFIX), *routes(pool, identity, prefix=PREFIX, clock=clock)])


@contextmanager
def served(make: Callable[[], Application]) -> Iterator[str]:
    """Serve an application on a free port of the loopback inside the running loop."""
    sockets = bind_sockets(0, "127.0.0.1")
    server = HTTPServer(make())
    server.add_sockets(sockets)
    try:
        yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}{PREFIX}"
    finally:
        server.stop()
