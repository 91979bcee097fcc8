"""Interfaces of a pool for pages and their API, as protocols.

The real parts implement them, which the type checker verifies at the end of this module, and so do
the parts of a stage. So a change to the pool's methods cannot leave a stage behind.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from benchpool_scheduler import contract
from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.access import AccessAsk, AccessDecision, AccessRequest
from benchpool_scheduler.contract.audit import AuditPage, AuditQuery
from benchpool_scheduler.runtime import LogChunk, WorkerId
from benchpool_scheduler.service import AuditEvent, Caller, Pool
from benchpool_scheduler.service.views.broadcast import Listener


class JobsPort(Protocol):
    """Jobs and their actions."""

    def select(
        self,
        caller: Caller,
        *,
        all: bool = False,
        project: str | None = None,
        state: State | None = None,
        limit: int = 1000,
        **more: Any,
    ) -> list[contract.Job]: ...

    def detail(self, caller: Caller, job: str) -> contract.JobDetail: ...

    def attempts(self, caller: Caller, job: str) -> list[contract.Attempt]: ...

    def why(self, caller: Caller, job: str) -> contract.Why: ...

    def submission(self, caller: Caller, job: str) -> contract.JobSubmission: ...

    async def act(
        self, caller: Caller, job: str, action: str, body: msgspec.Struct | None = None
    ) -> contract.Job: ...


class LogsPort(Protocol):
    """Logs of workers."""

    def which(
        self, caller: Caller, job: str, *, attempt: int | None = None, worker: int = 0
    ) -> WorkerId: ...

    async def read(
        self,
        caller: Caller,
        job: str,
        *,
        attempt: int | None = None,
        worker: int = 0,
        offset: int = 0,
        limit: int = 65536,
    ) -> LogChunk: ...

    async def metrics(
        self, caller: Caller, job: str, query: contract.MetricsQuery
    ) -> contract.JobMetrics: ...

    async def wait(
        self,
        caller: Caller,
        job: str,
        *,
        attempt: int | None = None,
        worker: int = 0,
        offset: int = 0,
        timeout_s: float = 15.0,
    ) -> bool: ...


class BenchesPort(Protocol):
    """Benches and their queue."""

    def leases(self, caller: Caller, user: str | None = None) -> list[contract.Lease]: ...

    def line(self, caller: Caller) -> list[contract.InLine]: ...


class ViewsPort(Protocol):
    """The pool as a whole."""

    def status(self, caller: Caller, *, gpus: bool = True) -> contract.Status: ...

    def kept(self) -> str: ...

    def quota(self, caller: Caller, user: str | None = None) -> contract.Quota: ...


class FilesPort(Protocol):
    """Files of jobs."""

    async def of(self, user: str) -> list[contract.FilesQuota]: ...

    async def sizes(self, caller: Caller, job: str) -> dict[str, int] | None: ...

    async def discard(self, caller: Caller, job: str, asked: contract.JobDiscard) -> str: ...


class EventsPort(Protocol):
    """Events."""

    def to(
        self, listener: Listener, caller: Caller, after: int | None = None
    ) -> AbstractContextManager[None]: ...


class AuditPort(Protocol):
    """The audit trail."""

    async def record(self, deed: AuditEvent) -> None: ...

    def note(self, deed: AuditEvent) -> None: ...

    async def read(self, caller: Caller, query: AuditQuery) -> AuditPage: ...


class AccessPort(Protocol):
    """Access requests to projects."""

    async def requests(self, caller: Caller, user: str | None = None) -> list[AccessRequest]: ...

    async def ask(self, caller: Caller, asked: AccessAsk) -> AccessRequest: ...

    async def add(self, caller: Caller, asked: AccessDecision) -> contract.ConfigurationChange: ...

    async def decline(self, caller: Caller, asked: AccessDecision) -> AccessRequest: ...


class EstimatesPort(Protocol):
    """Accuracy of the estimated starts."""

    def accuracy(self) -> contract.StartEstimates: ...


class PoolPort(Protocol):
    """Parts of a pool that pages and their API use."""

    async def whole(self) -> None: ...

    @property
    def jobs(self) -> JobsPort: ...

    @property
    def logs(self) -> LogsPort: ...

    @property
    def benches(self) -> BenchesPort: ...

    @property
    def views(self) -> ViewsPort: ...

    @property
    def files(self) -> FilesPort: ...

    @property
    def events(self) -> EventsPort: ...

    @property
    def audit(self) -> AuditPort: ...

    @property
    def estimates(self) -> EstimatesPort: ...

    @property
    def access(self) -> AccessPort: ...


def real(pool: Pool) -> PoolPort:
    """Return the pool; the type checker reports a part that does not match its port."""
    return pool
