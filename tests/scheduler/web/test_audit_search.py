"""Search and export on the page of the audit trail."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from benchpool_scheduler.service.administration.audit_trail import AuditEvent
from benchpool_support.pools import ADMIN, SUSAN, make_pool, opened
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.stage import application, served

pytestmark = pytest.mark.slow


async def test_audit_records_are_searched_and_exported(tmp_path: Path) -> None:
    pool = make_pool(tmp_path, runtime=ScriptedRuntime(devices(6)))
    async with opened(pool):
        await pool.audit.record(AuditEvent(ADMIN, "::1", "cancel", "j1", reason="=power cut"))
        await pool.audit.record(AuditEvent(SUSAN, "::1", "submit", "job-of-susan"))
        with served(lambda: application(pool, {"ada": ADMIN, "susan": SUSAN})) as url:
            async with httpx.AsyncClient(base_url=url, trust_env=False) as client:

                async def read(query: str, reader: str = "ada") -> httpx.Response:
                    return await client.get(f"audit{query}", headers={"Cookie": f"reader={reader}"})

                page = await read("?search=POWER&since=2020-01-01&events=true")
                assert page.status_code == 200, page.text
                assert "=power cut" in page.text
                assert "job-of-susan" not in page.text
                assert 'value="POWER"' in page.text
                listed = await read("?search=POWER&export=csv")
                assert listed.headers["Content-Disposition"].endswith('events.csv"')
                assert listed.text.splitlines()[1].endswith(",::1,cancel,j1,,'=power cut,")
                (found,) = (await read("?target=job-of-susan&export=json")).json()
                assert (found["actor"], found["action"]) == ("susan", "submit")
                assert (await read("?until=2020-01-01&export=json")).json() == []
                assert (await read("?export=csv", "susan")).status_code == 403
