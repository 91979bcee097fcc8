"""The pool as api and web see it: every verb, with the caller's rights checked.

One asyncio loop owns a ``Pool``. Reads answer from memory. Commands are written to the store
before they are answered and before the runtime acts; a crash in between is repaired when the
pool is opened again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from benchpool_scheduler import contract
from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract.operations import JobActions
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.errors import InvalidInput, NotFound
from benchpool_scheduler.hub import Directory
from benchpool_scheduler.runtime import LogChunk, Results, Runtime, WorkerId
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration.reconfiguration import Keep
from benchpool_scheduler.service.jobs.contents import JobContents
from benchpool_scheduler.service.jobs.uploads import ContentStore, ObjectWriter
from benchpool_scheduler.service.ledger.job_index import PREFIX
from benchpool_scheduler.service.observed.site import Containers, Site
from benchpool_scheduler.service.pool.administration import Administration
from benchpool_scheduler.service.pool.engine import Engine
from benchpool_scheduler.service.process.clock import Clock, SystemClock
from benchpool_scheduler.service.process.identifiers import new_job_id
from benchpool_scheduler.service.process.shielded import shielded
from benchpool_scheduler.service.views import job_views
from benchpool_scheduler.service.views.announcing import Announce
from benchpool_scheduler.service.views.events import FeedEntry, FeedEvent
from benchpool_scheduler.service.views.figures import Metrics
from benchpool_scheduler.store import Store
from benchpool_scheduler.store.records import JobRecord

LOG_BYTES = 1 << 20


class Pool(Administration):
    """All verbs of the service.

    Args:
        store: Where accepted facts live; opened and closed with the pool.
        runtime: Where workers run; opened and closed with the pool.
        configuration: The first configuration; ``apply_configuration`` replaces it.
        state: The state folder; ``objects``, ``jobs`` and ``homes`` lie in it.
        clock: Where times come from.
        new_id: Makes ids of jobs and leases, 26 characters of [a-z0-9].
        base_url: The service's address for people; a job's ``url`` is ``<base_url>/jobs/<id>``.
        directory: The Hub's users and servers.
        accounts: ``system`` runs jobs as the system account of their user.
        environment: The administrator's allow-list by value, for every worker.
        configuration_file: Where ``apply_configuration`` writes the text, if anywhere.
        images: Jobs may name the image they run in. ``containers``: workers are containers.
        announce: Takes waiting jobs whose reason is new, to say it where people look.
        contents: Where uploaded contents lie; by default in the state folder.
        keep_configuration: Keeps the text of ``apply_configuration`` elsewhere than in a file.
    """

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        configuration: Configuration,
        *,
        state: Path,
        directory: Directory,
        clock: Clock | None = None,
        new_id: Callable[[], str] = new_job_id,
        base_url: str = "",
        accounts: Literal["shared", "system"] = "shared",
        environment: Mapping[str, str] | None = None,
        configuration_file: Path | None = None,
        images: bool = False,
        containers: Containers | None = None,
        announce: Announce | None = None,
        contents: ContentStore | None = None,
        keep_configuration: Keep | None = None,
    ) -> None:
        self._site = Site(
            configuration=configuration,
            clock=clock or SystemClock(),
            directory=directory,
            state=state.absolute(),
            new_id=new_id,
            base_url=base_url,
            accounts=accounts,
            environment=dict(environment or {}),
            images=images,
            containers=containers,
        )
        self._engine = Engine(
            store,
            runtime,
            self._site,
            configuration_file,
            announce,
            contents,
            keep_configuration,
        )

    # ------------------------------------------------------------------ life

    async def open(self) -> None:
        """Read the store, find running workers again, finish what a crash cut off, start passes.

        Errors: Unavailable when another process holds the store or it is damaged.
        """
        await self._engine.open()

    async def close(self) -> None:
        """Stop passes and let go of runtime and store; workers run on."""
        await self._engine.close()

    # ------------------------------------------------------------------ jobs

    async def submit(self, caller: Caller, submission: contract.JobSubmission) -> contract.Job:
        """Accept a job; it is on disk when this returns. A repeat by key answers the first one.

        Errors: InvalidInput, Forbidden, NotFound, Refused, TooLarge, TooMany, Unavailable.
        """
        return (await self.submit_once(caller, submission))[0]

    async def submit_once(
        self, caller: Caller, submission: contract.JobSubmission
    ) -> tuple[contract.Job, bool]:
        """Do as ``submit`` and tell whether the job is new (HTTP 201) or a repeat (200)."""
        record, new = await shielded(self._engine.admission.submit(caller, submission))
        return self._engine.jobs.job(self._now(record)), new

    async def preview(self, caller: Caller, submission: contract.JobSubmission) -> contract.Preview:
        """Say what would happen to this submission now; objects need not be there yet.

        Errors: those of ``submit``.
        """
        return await self._engine.previews.preview(caller, submission)

    def jobs(
        self,
        caller: Caller,
        *,
        all: bool = False,
        project: str | None = None,
        state: contract.State | None = None,
        limit: int = 1000,
    ) -> list[contract.Job]:
        """Return jobs, newest first: the caller's own, or with ``all`` each that it may see."""
        users, projects = self._visible(caller, all=all, project=project)
        chosen = (
            record
            for record in self._engine.ledger.job_index.newest(
                users=users,
                projects=projects,
                state=None if state is None else JobState(state.value),
            )
            if project is None or record.project == project
        )
        return [self._engine.jobs.job(record) for record in islice(chosen, max(0, limit))]

    def _visible(
        self, caller: Caller, *, all: bool, project: str | None
    ) -> tuple[Sequence[str] | None, Sequence[str] | None]:
        """Return whose jobs, and those of which projects, a list is about; None for no bound."""
        if all and rights.rules_all(caller):
            return (None, None) if project is None else ((), (project,))
        led = rights.led_projects(caller, self._site.configuration) if all else ()
        if project in led:
            return (), (project,)
        return (caller.name,), led if project is None else ()

    def job(self, caller: Caller, job: str) -> contract.JobDetail:
        """Return a job and its attempts; ``job`` is an id or its only prefix of 4 or more.

        Errors: NotFound.
        """
        return self._engine.jobs.detail(self._find(caller, job))

    def attempts_of(self, caller: Caller, job: str) -> list[contract.Attempt]:
        """Return the starts of a job alone, for lists of many jobs. Errors: NotFound."""
        return self._engine.jobs.attempts(self._find(caller, job))

    def why(self, caller: Caller, job: str) -> contract.Why:
        """Explain why a job waits (R22). Errors: NotFound."""
        return self._engine.jobs.why(self._find(caller, job))

    def submission(self, caller: Caller, job: str) -> contract.JobSubmission:
        """Return what was submitted, without its key. Errors: NotFound."""
        record = self._find(caller, job)
        stored = self._engine.ledger.store.submission(record.id)
        if stored is None:
            raise rights.no_job(job)
        found = msgspec.json.decode(stored, type=contract.JobSubmission)
        return msgspec.structs.replace(found, key=None)

    async def act(
        self, caller: Caller, job: str, action: str, body: Struct | None = None
    ) -> contract.Job:
        """Do to a job what an action of the table says (``contract.operations.JobActions``).

        ``body`` is that of the action, by default an empty one. Repeating it does nothing.
        Errors: NotFound, InvalidInput, Refused where the job's state does not let it.
        """
        record = self._find(caller, job)
        asked = getattr(JobActions, action).body() if body is None else body
        await shielded(self._engine.commands.act(caller, record.id, action, asked))
        return self._engine.jobs.job(self._now(record))

    # ------------------------------------------------------------------ logs

    def log(
        self, caller: Caller, job: str, *, attempt: int | None = None, worker: int = 0
    ) -> WorkerId:
        """Return which log is meant: by default that of the newest attempt. Errors: NotFound."""
        record = self._find(caller, job)
        number = max(1, record.attempt) if attempt is None else attempt
        known = self._engine.ledger.attempt(record.id, number)
        # Those that left count, and those that came in their place.
        workers = record.workers if known is None else len(known.workers)
        if not 1 <= number <= max(1, record.attempt) or not 0 <= worker < workers:
            raise NotFound(
                f"Job {record.id[:8]} has {record.attempt} attempts of {workers} workers "
                f"(counted from 0); there is no attempt {number} with worker {worker}.",
                field="attempt",
                numbers={"attempts": record.attempt, "workers": workers},
            )
        return WorkerId(record.id, number, worker)

    async def read_log(
        self,
        caller: Caller,
        job: str,
        *,
        attempt: int | None = None,
        worker: int = 0,
        offset: int = 0,
        limit: int = 65536,
    ) -> LogChunk:
        """Return at most ``limit`` bytes (at most 1 MiB) from ``offset``; empty when none yet.

        A negative ``offset`` counts from the log's present end. Errors: NotFound.
        """
        which = self.log(caller, job, attempt=attempt, worker=worker)
        if offset < 0:
            offset += await self._engine.runtime.find_log_offset(which, None)
        return await self._engine.runtime.read_log(which, max(0, offset), min(limit, LOG_BYTES))

    async def find_log_offset(
        self,
        caller: Caller,
        job: str,
        since: float,
        *,
        attempt: int | None = None,
        worker: int = 0,
    ) -> int:
        """Return the first offset written at ``since`` (seconds since the epoch) or later."""
        which = self.log(caller, job, attempt=attempt, worker=worker)
        return await self._engine.runtime.find_log_offset(which, since)

    async def wait_log(
        self,
        caller: Caller,
        job: str,
        *,
        attempt: int | None = None,
        worker: int = 0,
        offset: int = 0,
        timeout_s: float = 15.0,
    ) -> bool:
        """Wait until there is more after ``offset`` or the log ended; false on time-out."""
        which = self.log(caller, job, attempt=attempt, worker=worker)
        return await self._engine.runtime.wait_log(which, max(0, offset), timeout_s)

    async def read_results(
        self, caller: Caller, job: str, *, worker: int = 0, offset: int = 0, limit: int = LOG_BYTES
    ) -> bytes:
        """Return a part of what a worker has sent of its results, packed (tar).

        Nothing at its end, and where results lie in the folder that the job named. Errors:
        NotFound.
        """
        record = self._find(caller, job)
        runtime = self._engine.runtime
        packed = runtime.results(record.id, worker) if isinstance(runtime, Results) else None
        if packed is None:
            return b""
        return await asyncio.to_thread(_part, packed, offset, limit)

    # ------------------------------------------------------------------ events

    def events(self, caller: Caller, after: int | None = None) -> AsyncGenerator[FeedEvent, None]:
        """Yield what the caller may see of what happens, from after ``after``; None from now.

        Starts with an event ``reset`` when the events after ``after`` are no longer known: the
        reader then asks for everything again.
        """
        return self._engine.feed.follow(after, partial(self._render, caller))

    # ------------------------------------------------------------------ quota, status

    def quota(self, caller: Caller, user: str | None = None) -> contract.Quota:
        """Return build quota and projects of a user. Errors: NotFound for somebody else's."""
        name = caller.name if user is None else user
        rights.require_same_user(caller, name)
        return self._engine.pool.quota(name, self._groups(caller, name))

    def status(self, caller: Caller, *, gpus: bool = True) -> contract.Status:
        """Return the pool; names of other people's jobs and servers only for those who may.

        Without ``gpus`` the list of all GPUs is left out.
        """
        return self._engine.pool.status(caller, gpus=gpus)

    def node_pools(self) -> Mapping[str, Mapping[str, int]]:
        """Return of each pool of nodes how many nodes, GPUs and free GPUs it has."""
        return self._engine.pool.node_pools()

    # ------------------------------------------------------------------ leases

    async def reserve(self, caller: Caller, request: contract.LeaseRequest) -> contract.Lease:
        """Hold build GPUs for a server: check and reservation are one step (R2).

        Errors: Forbidden for others than services and administrators, Refused ``build-quota``,
        Unavailable ``build-capacity``.
        """
        rights.require_admin(caller, "reserve GPUs for a server")
        return job_views.lease(await shielded(self._engine.leases.reserve(request)))

    async def wait_in_line(
        self, caller: Caller, request: contract.LineRequest
    ) -> contract.LineAnswer:
        """Hold build GPUs for a server, or say where it stands in line for them (R2, R3).

        Errors: Forbidden for others than services and administrators, Refused ``build-quota``,
        TooMany ``line-full``.
        """
        rights.require_admin(caller, "reserve GPUs for a server")
        found = await self._engine.leases.reserve_or_wait(request)
        if isinstance(found, contract.LinePlace):
            return contract.LineAnswer(place=found)
        return contract.LineAnswer(lease=job_views.lease(found))

    async def release(self, caller: Caller, lease: str) -> None:
        """Give a lease back. Repeating it does nothing. Errors: Forbidden."""
        rights.require_admin(caller, "give back the GPUs of a server")
        await shielded(self._engine.leases.release(lease))

    def leases(self, caller: Caller, user: str | None = None) -> list[contract.Lease]:
        """Return the leases that the caller may see, of one user or of all."""
        return [
            job_views.lease(lease)
            for lease in self._engine.ledger.leases()
            if rights.may_use_lease(caller, lease) and user in (None, lease.user)
        ]

    def line(self, caller: Caller) -> list[contract.InLine]:
        """Return the servers in line for a bench that the caller may see, the next one first."""
        waiting = self._engine.leases.line()
        return [it for it in waiting if rights.may_see_bench(caller, it.user)]

    # ------------------------------------------------------------------ objects

    def missing_objects(self, caller: Caller, hashes: Iterable[str]) -> list[str]:
        """Return those hashes that this caller has not uploaded, in the order given."""
        wanted = list(hashes)
        present = self._engine.objects.present(caller.name, wanted)
        return [sha256 for sha256 in wanted if sha256 not in present]

    def object_writer(self, caller: Caller, sha256: str, size: int) -> ObjectWriter:
        """Return a writer (``await write(bytes)``, ``await close()``, ``abort()``) for an object.

        ``close`` verifies length and hash; only then the object exists. Errors: InvalidInput,
        TooLarge, Unavailable when the disk is full.
        """
        return self._engine.objects.writer(caller.name, sha256, size)

    @property
    def contents(self) -> JobContents:
        """What jobs were submitted with, for the agents of their workers."""
        return JobContents(self._engine.ledger, self._engine.objects)

    # ------------------------------------------------------------------ operation

    def report(self, topic: str, sentence: str | None) -> None:
        """Say something that people who look after the pool must know; None clears it."""
        self._site.report(topic, sentence)

    def metrics(self) -> Metrics:
        """Return figures for Prometheus; labels are bounded by projects and states."""
        return self._engine.metrics()

    # ------------------------------------------------------------------ inside

    def _find(self, caller: Caller, job: str) -> JobRecord:
        """Return a job that the caller may see, by id or by a prefix that only it has."""
        ledger = self._engine.ledger
        exact = ledger.job(job)
        if exact is not None:
            found = [exact] if self._may_use(caller, exact) else []
        elif len(job) >= PREFIX:
            matching = ledger.job_index.beginning(job)
            found = [it for it in matching if self._may_use(caller, it)]
        else:
            found = []
        if len(found) > 1:
            raise InvalidInput(
                f"{len(found)} jobs begin with {job!r}; write more signs of the id.",
                code="ambiguous-id",
                field="id",
                numbers={"jobs": len(found)},
            )
        if not found:
            raise rights.no_job(job)
        return found[0]

    def _now(self, record: JobRecord) -> JobRecord:
        return self._engine.ledger.job(record.id) or record

    def _may_use(self, caller: Caller, record: JobRecord) -> bool:
        return rights.may_use(caller, record, self._site.configuration)

    def _groups(self, caller: Caller, user: str) -> Mapping[str, int | None]:
        known = self._site.hub_user(user)
        groups = {} if known is None else dict(known.groups)
        if user == caller.name:
            groups = {**dict.fromkeys(caller.groups), **groups}
        return groups

    def _render(self, caller: Caller, entry: FeedEntry) -> bytes | None:
        if entry.kind == "pool":
            return self._engine.pool_event()
        record = self._engine.ledger.job(entry.job)
        if record is not None:
            view = self._engine.jobs.job(record)
            return msgspec.json.encode(view) if self._may_use(caller, record) else None
        owned = rights.may_use_of(caller, entry.user, entry.project, self._site.configuration)
        return msgspec.json.encode(contract.JobDeleted(entry.job)) if owned else None


def _part(file: Path, offset: int, limit: int) -> bytes:
    with file.open("rb") as opened:
        opened.seek(offset)
        return opened.read(limit)
