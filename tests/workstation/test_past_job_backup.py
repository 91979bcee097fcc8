"""`benchpool backup` includes the use of past jobs, and `restore` brings it back."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchpool_scheduler.store.past_jobs import PastJob, PastJobs
from benchpool_scheduler.workstation import restoring
from benchpool_support.serving import served

NOW = time.time()
FIRST = PastJob("a" * 26, NOW - 900, NOW - 600, 300.0, 2, "vision", "susan")
SECOND = PastJob("b" * 26, NOW - 800, NOW - 500, 60.0, 1, "speech", "joe")


def used_by(state: Path) -> PastJobs:
    return PastJobs(state / "scheduler" / "past-jobs")


def test_past_jobs_are_restored_and_merged(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    copy, packed = tmp_path / "copy", tmp_path / "copy.tar"
    used_by(tmp_path / "state").add([FIRST], NOW)
    with served(tmp_path / "state") as service, service.client("root") as root:
        history = root.history(days=30)
        restoring.take(root.backup(), str(copy))
        restoring.take(root.backup(), "-")
    packed.write_bytes(capsysbinary.readouterr().out)
    for source in (copy, packed):
        state = tmp_path / f"from-{source.name}"
        used_by(state).add([SECOND], NOW)
        done = restoring.restore(state, str(source))
        assert any(line.startswith("The use of 1 past job restored to") for line in done)
        again = restoring.restore(state, str(source))
        assert any(line.startswith("The use of past jobs is already recorded in") for line in again)
        assert sorted(it.id for it in used_by(state).read(0.0)) == [FIRST.id, SECOND.id]
    with served(tmp_path / "from-copy") as service, service.client("root") as root:
        assert set(history.splitlines()) < set(root.history(days=30).splitlines())


def test_truncated_line_is_skipped(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    past = used_by(tmp_path / "state")
    past.add([FIRST], NOW)
    with served(tmp_path / "state") as service, service.client("root") as root:
        restoring.take(root.backup(), str(copy))
    new = used_by(tmp_path / "new")
    new.add([SECOND], NOW)
    file = next(new.folder.iterdir())
    with file.open("ab") as cut:
        cut.write(b'{"id":"ccc')
    restoring.restore(tmp_path / "new", str(copy))
    assert sorted(it.id for it in new.read(0.0)) == [FIRST.id, SECOND.id]
