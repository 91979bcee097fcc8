"""The parts of a pool on a stage, put together; most of them are the stage itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract.audit import AuditPage, AuditQuery
from benchpool_scheduler.service import Caller, Deed
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_support.pool_ports import (
    AuditPort,
    BenchesPort,
    EventsPort,
    JobsPort,
    LogsPort,
    ViewsPort,
)


@dataclass
class StagedTrail:
    """An audit trail that only keeps what was done and refused."""

    deeds: list[Deed] = field(default_factory=list)

    async def record(self, deed: Deed) -> None:
        """Keep what was done."""
        self.deeds.append(deed)

    def note(self, deed: Deed) -> None:
        """Keep what was refused."""
        self.deeds.append(deed)

    async def read(self, caller: Caller, query: AuditQuery) -> AuditPage:
        """Return nothing: pages of the trail are tested with a real pool."""
        return AuditPage([], more=False)


@dataclass(frozen=True, slots=True)
class StagedParts:
    """The parts of a pool that the stage plays, each checked against its port."""

    jobs: JobsPort
    logs: LogsPort
    benches: BenchesPort
    views: ViewsPort
    events: EventsPort
    audit: AuditPort
    observed: SimpleNamespace = field(
        default_factory=lambda: SimpleNamespace(now=Observations.of(Configuration()))
    )
