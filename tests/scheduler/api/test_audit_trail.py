"""Actions and refusals are written to the audit trail on disk before the response is sent."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from benchpool_scheduler.client import Client
from benchpool_scheduler.contract import (
    AdoptionRequest,
    AuditOutcome,
    AuditRecord,
    CommandEntry,
    JobSubmission,
    LeaseRequest,
    LoginReport,
)
from benchpool_scheduler.contract.configuration import (
    ConfigurationEdit,
    ConfigurationRevert,
    Setting,
)
from benchpool_scheduler.errors import Forbidden, InvalidInput, NotFound
from benchpool_scheduler.service.administration.audit_trail import REFUSALS_A_MINUTE
from benchpool_support import direct
from benchpool_support.serving import CONFIGURATION, Served, served

SLEEPER = CommandEntry([sys.executable, "-c", "import time; time.sleep(600)"])


def submission() -> JobSubmission:
    return JobSubmission(entry=SLEEPER, project="vision", name="fit")


def records(service: Served, **asked: str) -> list[AuditRecord]:
    with service.client("root") as root:
        return root.audit(**asked).records  # type: ignore[arg-type]


def test_change_has_actor_address_reason_and_previous_value(service: Served) -> None:
    with service.client("susan") as susan, service.client("root") as root:
        job = susan.submit(submission())
        susan.change(job.id, priority=70)
        susan.rename(job.id, "longer fit")
        root.cancel(job.id, "the node goes away")
    cancelled, renamed, changed, sent = records(service)
    assert (sent.actor, sent.action, sent.target) == ("susan", "submit", job.id)
    assert (sent.after["name"], sent.after["project"]) == ("fit", "vision")
    assert (changed.before["priority"], changed.after["priority"]) == (50, 70)
    assert (renamed.before["name"], renamed.after["name"]) == ("fit", "longer fit")
    assert (cancelled.actor, cancelled.admin) == ("root", True)
    assert (cancelled.reason, cancelled.address) == ("the node goes away", "127.0.0.1")


def test_configuration_and_benches_are_audited_but_reads_are_not(service: Served) -> None:
    with service.client("root") as root, service.client("hub") as hub:
        root.check_config(CONFIGURATION)
        root.apply_config(CONFIGURATION.replace("quota: 2, members: [joe]", "quota: 1"))
        lease = hub.reserve(LeaseRequest(user="susan", server="", spawn="s1", gpus=1))
        hub.release(lease.id)
        root.status()
        root.preview(submission())
    released, reserved, applied = records(service)
    assert (applied.action, "speech" in str(applied.after["changes"])) == ("apply_config", True)
    assert (reserved.actor, reserved.kind) == ("benchpool-hub", "service")
    assert (reserved.after["user"], reserved.after["gpus"] != 0) == ("susan", True)
    assert (released.action, released.target) == ("release", lease.id)


def test_configuration_change_is_audited_with_reason(service: Served) -> None:
    with service.client("root") as root:
        both = [Setting("projects.speech.quota", 1), Setting("policy.grace_s", 31)]
        root.set_config(ConfigurationEdit(both, "spring"))
        root.apply_config(CONFIGURATION, reason="as before")
        root.revert_config(ConfigurationRevert(reason="spring again"))
    reverted, applied, done = records(service)
    assert (done.action, done.reason) == ("set_config", "spring")
    assert "guaranteed quota 2 → 1. Policy" in str(done.after["changes"]), "sentences stay apart"
    assert (applied.action, applied.reason) == ("apply_config", "as before")
    assert (reverted.action, reverted.reason) == ("revert_config", "spring again")


def test_listing_unknown_jobs_is_not_audited(service: Served) -> None:
    with service.client("root") as root, service.client("susan") as susan:
        root.status()
        assert root.doubts() == root.adopt(AdoptionRequest())
        with pytest.raises(NotFound):
            root.adopt(AdoptionRequest(id="a" * 26))
        with pytest.raises(Forbidden):
            susan.doubts()
    refused, tried = records(service)
    assert (refused.action, refused.actor) == ("doubts", "susan")
    assert (tried.action, tried.outcome) == ("adopt", "refused")


def test_refusal_is_audited_with_code_and_message(service: Served) -> None:
    with service.client("susan") as susan, service.client("joe") as joe:
        job = susan.submit(submission())
        with pytest.raises(NotFound):
            joe.cancel(job.id)
        with pytest.raises(InvalidInput):
            susan.change(job.id, workers=4000)
        with pytest.raises(Forbidden):
            susan.audit()
    refused = direct.get(f"{service.url}/api/v1/jobs")
    assert refused.status_code == 401
    found = {one.action: one for one in records(service, outcome=AuditOutcome.REFUSED)}
    assert {name: one.actor for name, one in found.items()} == {
        "cancel": "joe",
        "change": "susan",
        "audit": "susan",
        "jobs": "",
    }
    assert (found["cancel"].target, found["cancel"].code) == (job.id, "not-found")
    assert "Only an administrator" in found["audit"].reason


def test_refusal_flood_is_counted_in_summary(service: Served) -> None:
    with direct.Client() as anonymous:
        for _ in range(REFUSALS_A_MINUTE + 40):
            assert anonymous.get(f"{service.url}/api/v1/jobs").status_code == 401
    singly = records(service, action="jobs")
    assert REFUSALS_A_MINUTE <= len(singly) <= 2 * REFUSALS_A_MINUTE  # a minute may end


def test_hub_logins_are_audited_and_accepted_only_from_hub(service: Served) -> None:
    with service.client("hub") as hub:
        hub.report_login(LoginReport("susan", AuditOutcome.DONE, "login link", "10.0.0.7"))
        hub.report_login(LoginReport("mallory", AuditOutcome.REFUSED, "password", "10.0.0.9"))
    with service.client("susan") as susan, pytest.raises(Forbidden):
        susan.report_login(LoginReport("root", AuditOutcome.DONE, "password"))
    refused, done = records(service, action="login")
    assert (done.actor, done.address, done.reason) == ("susan", "10.0.0.7", "login link")
    assert (refused.actor, refused.target, refused.outcome) == ("", "mallory", "refused")


def test_audit_trail_continues_after_restart_and_detects_tampering(tmp_path: Path) -> None:
    for _ in range(2):
        with served(tmp_path / "state") as service, service.client("susan") as susan:
            susan.submit(submission())
            with service.client("root") as root:
                check = root.verify_audit()
    assert (check.ok, check.first, check.last >= 2) == (True, 1, True)
    file = next((tmp_path / "state" / "scheduler" / "audit").glob("*.jsonl"))
    file.write_bytes(file.read_bytes().replace(b'"susan"', b'"sarah"'))
    with served(tmp_path / "state") as service, service.client("root") as root:
        harmed = root.verify_audit()
    assert (harmed.ok, "Line 1" in str(harmed.problem)) == (False, True)


def test_unwritable_audit_trail_is_reported_and_work_continues(
    service: Served, tmp_path: Path
) -> None:
    folder = tmp_path / "state" / "scheduler" / "audit"
    with service.client("susan") as susan:
        susan.submit(submission())
        shutil.rmtree(folder)
        folder.write_text("in the way")
        job = susan.submit(submission())
        assert any("audit trail" in one for one in problems(susan))
        os.unlink(folder)
        folder.mkdir()
        susan.rename(job.id, "again")
        assert not any("audit trail" in one for one in problems(susan))


def problems(client: Client) -> list[str]:
    return client.status().health.problems
