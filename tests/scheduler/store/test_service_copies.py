"""Services are included in copies of a volume and restored from them."""

from __future__ import annotations

from pathlib import Path

from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.serving import ServiceAccess
from benchpool_scheduler.store.service_files import FOLDER, NAME, ServiceFiles, ServiceRecord
from benchpool_scheduler.store.volume_copies import VolumeCopies, copy_pool, restore_pool

LLM = ServiceRecord(
    id="k" * 26,
    name="llm",
    user="susan",
    project="vision",
    created=1.0,
    submission=JobSubmission(entry=CommandEntry(["serve"])),
    min_replicas=0,
    max_replicas=2,
    idle_s=900,
    in_flight=8,
    access=ServiceAccess.PROJECT,
    readiness="/health",
    mode="asleep",
    mode_since=1.0,
)


def test_service_is_copied_and_restored_if_missing(tmp_path: Path) -> None:
    volume, other = tmp_path / "volume", tmp_path / "other"
    ServiceFiles(volume / "scheduler" / FOLDER).write(LLM)
    copies = VolumeCopies(tmp_path / "copies", 3)
    copy_pool(volume, copies)
    newest = copies.newest()
    assert newest is not None
    (summary,) = restore_pool(other, newest)
    assert "1 service," in summary
    assert ServiceFiles(other / "scheduler" / FOLDER).read() == ([LLM], [])
    assert NAME.fullmatch(f"{FOLDER}/{LLM.id}.json")
