"""An audit trail with a damaged end continues, records the damage and reports it."""

from __future__ import annotations

from pathlib import Path

from benchpool_scheduler.contract.audit import AuditQuery, AuditVerifyQuery
from benchpool_scheduler.service.administration.audit_trail import AuditEvent
from benchpool_support.pools import ADMIN, make_pool, opened
from benchpool_support.scripted import ScriptedRuntime, devices


async def test_damaged_audit_trail_is_reported(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        await pool.audit.record(AuditEvent(ADMIN, "127.0.0.1", "cancel", "7k2m"))
    files = sorted((tmp_path / "scheduler" / "audit").glob("*.jsonl"))
    with files[-1].open("ab") as end:
        end.write(b"\0" * 512 + b"\n")
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        (one,) = (await pool.audit.read(ADMIN, AuditQuery(action="audit-damaged"))).records
        assert one.actor == "benchpool"
        assert f"at the end of {files[-1].name} were not records" in one.reason
        (problem,) = pool.views.status(ADMIN).health.problems
        assert problem == f"The audit trail was damaged: {one.reason}."
        assert (await pool.audit.verify(ADMIN, AuditVerifyQuery())).ok
