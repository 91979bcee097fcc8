"""`benchpool backup` includes the audit trail, and `restore` brings it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.workstation import restoring
from benchpool_support.serving import served

TRAIL = "audit/000000000001.jsonl"


def test_audit_trail_is_restored_and_continued(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    copy, packed = tmp_path / "copy", tmp_path / "copy.tar"
    with served(tmp_path / "state") as service, service.client("root") as root:
        with service.client("susan") as susan:
            susan.submit(JobSubmission(entry=CommandEntry(["true"]), project="vision"))
        restoring.take(root.backup(), str(copy))
        restoring.take(root.backup(), "-")
    packed.write_bytes(capsysbinary.readouterr().out)
    assert (copy / TRAIL).is_file()
    for source in (copy, packed):
        state = tmp_path / f"from-{source.name}"
        done = restoring.restore(state, str(source))
        assert any(line.startswith("1 file of the audit trail restored to") for line in done)
        again = restoring.restore(state, str(source))
        assert any("already contains all records of the copy" in line for line in again)
        with served(state) as service, service.client("root") as root:
            assert [it.actor for it in root.audit(action="submit").records] == ["susan"]
            assert root.verify_audit().ok
