"""The audit trail records preemptions with claimant and rule, beside the actions of users."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import AuditQuery, State
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import audit_table
from benchpool_scheduler.service import Caller
from benchpool_scheduler.service.access import rights
from benchpool_support.pools import ADMIN, HUB, JOE, SUSAN, make_pool, opened, reached, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices

LEAD = Caller("lea")
CONFIGURATION = """
version: 1
projects:
  - {name: susan, quota: 2, members: [susan]}
  - {name: joe, quota: 2, members: [joe]}
"""


async def test_preemption_is_audited_with_target_reason_and_rule(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(4))
    pool = make_pool(tmp_path, runtime=runtime, configuration=load(CONFIGURATION))
    async with opened(pool):
        pays = await pool.jobs.submit(SUSAN, sleeper(gpus=4, name="pays"))
        await reached(pool, pays.id, State.RUNNING)
        claims = await pool.jobs.submit(JOE, sleeper(gpus=2, name="claims"))
        await reached(pool, pays.id, State.PAUSING)
        found = await pool.audit.read(ADMIN, AuditQuery(events=True, search="r15"))
        (one,) = found.records
        assert (one.actor, one.kind, one.action, one.target) == (
            "benchpool", "service", "preempt", pays.id,
        )  # fmt: skip
        assert one.reason == "room for job claims (R15)"
        assert one.after | {"lost_gpu_s": 0} == {
            "rule": "R15", "gpus": 4, "user": "susan", "project": "susan",
            "for": claims.id, "for_user": "joe", "lost_gpu_s": 0,
        }  # fmt: skip
        none = await pool.audit.read(ADMIN, AuditQuery(search="(r3)"))  # no ID contains a bracket
        assert none.records == []
        assert (await pool.audit.read(ADMIN, AuditQuery(until=one.at))).records == []
        heading, row = audit_table(found.records).splitlines()
        assert heading.split(",")[6] == "rule"
        assert ",preempt," in row
        assert ",R15," in row


@pytest.mark.parametrize("caller", [SUSAN, LEAD, HUB])
@pytest.mark.parametrize("action", ["pause", "cancel"])
def test_stop_by_owner_lead_or_service_needs_no_reason(caller: Caller, action: str) -> None:
    rights.require_reason(caller, "susan", action, None)


def test_stop_by_administrator_requires_reason() -> None:
    for action in ("pause", "cancel"):
        with pytest.raises(InvalidInput, match=r"This job belongs to susan, .*--reason") as refused:
            rights.require_reason(ADMIN, "susan", action, "  ")
        assert refused.value.code == "reason-missing"
        rights.require_reason(ADMIN, "susan", action, "the node goes away")
        rights.require_reason(ADMIN, ADMIN.name, action, None)
    rights.require_reason(ADMIN, "susan", "resume", None)
