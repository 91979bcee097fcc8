"""Audit records are kept for the configured number of days."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract.audit import AuditQuery
from benchpool_scheduler.hub import StaticDirectory
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration.audit_trail import DAY_S, AuditEvent, AuditTrail
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.observed.service_settings import ServiceSettings
from benchpool_scheduler.store.audit_files import AuditFiles
from benchpool_support.clocks import FakeClock

ROOT = Caller("root", admin=True)


@pytest.mark.asyncio
@pytest.mark.parametrize(("days", "kept"), [(2, 2), (400, 6)])
async def test_audit_retention_removes_only_old_records(
    tmp_path: Path, days: int, kept: int
) -> None:
    clock = FakeClock()
    settings = ServiceSettings(
        clock=clock, directory=StaticDirectory(), state=tmp_path, new_id=lambda: "7k2m"
    )
    configuration = load(f"{{version: 1, retention: {{audit_days: {days}}}}}")
    files = AuditFiles(tmp_path / "audit", file_bytes=1)  # one file for each record
    trail = AuditTrail(SchedulerState(settings, configuration), files)
    await trail.open()
    for _day in range(6):
        clock.pass_s(DAY_S)
        await trail.record(AuditEvent(ROOT, "127.0.0.1", "cancel", "7k2m"))
    page = await trail.read(ROOT, AuditQuery())
    await trail.close()
    assert [one.number for one in page.records] == list(range(6, 6 - kept, -1))
