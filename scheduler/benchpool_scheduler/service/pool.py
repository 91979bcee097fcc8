"""The pool as api and web see it: every verb, with the caller's rights checked.

One asyncio loop owns a ``Pool``. Reads answer from memory. Commands are written to the store
before they are answered and before the runtime acts; a crash in between is repaired when the
pool is opened again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

from benchpool_scheduler import contract
from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.hub import Directory
from benchpool_scheduler.runtime import LogChunk, Runtime, WorkerId
from benchpool_scheduler.service.caller import Caller
from benchpool_scheduler.service.clock import Clock, SystemClock
from benchpool_scheduler.service.events import Event
from benchpool_scheduler.service.identifiers import new_job_id
from benchpool_scheduler.service.metrics import Metrics
from benchpool_scheduler.service.objects import ObjectWriter
from benchpool_scheduler.store import Store


class Pool:
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
    ) -> None:
        raise NotImplementedError

    # ------------------------------------------------------------------ life

    async def open(self) -> None:
        """Read the store, find running workers again, finish what a crash cut off, start passes.

        Errors: Unavailable when another process holds the store or it is damaged.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Stop passes and let go of runtime and store; workers run on."""
        raise NotImplementedError

    # ------------------------------------------------------------------ jobs

    async def submit(self, caller: Caller, submission: contract.JobSubmission) -> contract.Job:
        """Accept a job; it is on disk when this returns. A repeat by key answers the first one.

        Errors: InvalidInput, Forbidden, NotFound, Refused, TooLarge, TooMany, Unavailable.
        """
        raise NotImplementedError

    async def submit_once(
        self, caller: Caller, submission: contract.JobSubmission
    ) -> tuple[contract.Job, bool]:
        """Do as ``submit`` and tell whether the job is new (HTTP 201) or a repeat (200)."""
        raise NotImplementedError

    def preview(self, caller: Caller, submission: contract.JobSubmission) -> contract.Preview:
        """Say what would happen to this submission now; objects need not be there yet.

        Errors: those of ``submit``.
        """
        raise NotImplementedError

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
        raise NotImplementedError

    def job(self, caller: Caller, job: str) -> contract.JobDetail:
        """Return a job and its attempts; ``job`` is an id or its only prefix of 4 or more.

        Errors: NotFound.
        """
        raise NotImplementedError

    def why(self, caller: Caller, job: str) -> contract.Why:
        """Explain why a job waits (R22). Errors: NotFound."""
        raise NotImplementedError

    def submission(self, caller: Caller, job: str) -> contract.JobSubmission:
        """Return what was submitted, without its key. Errors: NotFound."""
        raise NotImplementedError

    async def pause(self, caller: Caller, job: str, reason: str | None = None) -> contract.Job:
        """Pause a job until it is resumed. Repeating it does nothing.

        Errors: NotFound, Refused when it has ended.
        """
        raise NotImplementedError

    async def resume(self, caller: Caller, job: str, reason: str | None = None) -> contract.Job:
        """Queue a paused job again. Repeating it does nothing.

        Errors: NotFound, Refused when it has ended.
        """
        raise NotImplementedError

    async def cancel(self, caller: Caller, job: str, reason: str | None = None) -> contract.Job:
        """End a job: at once when it waits, after notice and grace when it runs.

        Errors: NotFound, Refused when it ended otherwise. Repeating it does nothing.
        """
        raise NotImplementedError

    # ------------------------------------------------------------------ logs

    def log(
        self, caller: Caller, job: str, *, attempt: int | None = None, worker: int = 0
    ) -> WorkerId:
        """Return which log is meant: by default that of the newest attempt. Errors: NotFound."""
        raise NotImplementedError

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
        raise NotImplementedError

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
        raise NotImplementedError

    # ------------------------------------------------------------------ events

    def events(self, caller: Caller, after: int | None = None) -> AsyncIterator[Event]:
        """Yield what the caller may see of what happens, from after ``after``; None from now.

        Starts with an event ``reset`` when the events after ``after`` are no longer known: the
        reader then asks for everything again.
        """
        raise NotImplementedError

    # ------------------------------------------------------------------ quota, status

    def quota(self, caller: Caller, user: str | None = None) -> contract.Quota:
        """Return build quota and projects of a user. Errors: NotFound for somebody else's."""
        raise NotImplementedError

    def status(self, caller: Caller) -> contract.Status:
        """Return the pool; names of other people's jobs and servers only for those who may."""
        raise NotImplementedError

    # ------------------------------------------------------------------ leases

    async def reserve(self, caller: Caller, request: contract.LeaseRequest) -> contract.Lease:
        """Hold build GPUs for a server: check and reservation are one step (R2).

        Errors: Forbidden for others than services and administrators, Refused ``build-quota``,
        Unavailable ``build-capacity``.
        """
        raise NotImplementedError

    async def release(self, caller: Caller, lease: str) -> None:
        """Give a lease back. Repeating it does nothing. Errors: Forbidden."""
        raise NotImplementedError

    def leases(self, caller: Caller, user: str | None = None) -> list[contract.Lease]:
        """Return the leases that the caller may see, of one user or of all."""
        raise NotImplementedError

    # ------------------------------------------------------------------ configuration

    def check_configuration(self, caller: Caller, text: str) -> contract.ConfigurationChange:
        """Say what a configuration would change for whom.

        Errors: Forbidden for others than administrators, InvalidInput with line and key.
        """
        raise NotImplementedError

    async def apply_configuration(self, caller: Caller, text: str) -> contract.ConfigurationChange:
        """Put a configuration in force, all or nothing. Errors: as ``check_configuration``."""
        raise NotImplementedError

    async def reload_configuration(self) -> contract.ConfigurationChange:
        """Read the configuration file again (SIGHUP). Errors: InvalidInput; the old one stays."""
        raise NotImplementedError

    # ------------------------------------------------------------------ objects

    def missing_objects(self, caller: Caller, hashes: Iterable[str]) -> list[str]:
        """Return those hashes that this caller has not uploaded, in the order given."""
        raise NotImplementedError

    def object_writer(self, caller: Caller, sha256: str, size: int) -> ObjectWriter:
        """Return a writer (``await write(bytes)``, ``await close()``, ``abort()``) for an object.

        ``close`` verifies length and hash; only then the object exists. Errors: InvalidInput,
        TooLarge, Unavailable when the disk is full.
        """
        raise NotImplementedError

    # ------------------------------------------------------------------ operation

    def metrics(self) -> Metrics:
        """Return figures for Prometheus; labels are bounded by projects and states."""
        raise NotImplementedError
