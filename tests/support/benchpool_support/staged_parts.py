"""The parts of a pool on a stage, assembled; most of them are the stage itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract.access import AccessAsk, AccessDecision, AccessRequest
from benchpool_scheduler.contract.audit import AuditPage, AuditQuery
from benchpool_scheduler.contract.configuration import ConfigurationChange
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.service import AuditEvent, Caller
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_support.pool_ports import (
    AccessPort,
    AuditPort,
    BenchesPort,
    EstimatesPort,
    EventsPort,
    FilesPort,
    JobsPort,
    LogsPort,
    ViewsPort,
)


@dataclass
class StagedTrail:
    """Audit trail that only keeps actions and refusals."""

    deeds: list[AuditEvent] = field(default_factory=list)

    async def record(self, deed: AuditEvent) -> None:
        """Keep an action."""
        self.deeds.append(deed)

    def note(self, deed: AuditEvent) -> None:
        """Keep a refusal."""
        self.deeds.append(deed)

    async def read(self, caller: Caller, query: AuditQuery) -> AuditPage:
        """Return an empty page: pages of the trail are tested with a real pool."""
        return AuditPage([], more=False)


class StagedAccess:
    """Empty list of access requests: that section of the page is tested with a real pool."""

    async def requests(self, caller: Caller, user: str | None = None) -> list[AccessRequest]:
        """Return no access request."""
        return []

    async def ask(self, caller: Caller, asked: AccessAsk) -> AccessRequest:
        """Refuse: the stage has no configuration."""
        raise Unavailable("a stage")

    async def add(self, caller: Caller, asked: AccessDecision) -> ConfigurationChange:
        """Refuse: the stage has no configuration."""
        raise Unavailable("a stage")

    async def decline(self, caller: Caller, asked: AccessDecision) -> AccessRequest:
        """Refuse: the stage has no configuration."""
        raise Unavailable("a stage")


@dataclass(frozen=True, slots=True)
class StagedParts:
    """The parts of a pool that the stage implements, each checked against its port."""

    jobs: JobsPort
    logs: LogsPort
    benches: BenchesPort
    views: ViewsPort
    files: FilesPort
    events: EventsPort
    audit: AuditPort
    estimates: EstimatesPort
    access: AccessPort = field(default_factory=StagedAccess)
    in_force: Callable[[], Configuration] = Configuration

    @property
    def observed(self) -> SimpleNamespace:
        """The state in force: the configuration alone."""
        return SimpleNamespace(now=Observations.of(self.in_force()))

    async def whole(self) -> None:
        """Return immediately, because all jobs are loaded."""
