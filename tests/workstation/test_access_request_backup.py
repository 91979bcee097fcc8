"""Access requests are part of a backup and open again after a restore."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.store import volume_copies
from benchpool_scheduler.workstation import restoring
from benchpool_support.serving import served

ASKED = [("joe", "vision", "for the paper")]


def asked(state: Path) -> list[tuple[str, str, str]]:
    with served(state) as service, service.client("root") as root:
        return [(one.user, one.project, one.reason) for one in root.access()]


def test_access_requests_are_restored_from_folder_and_tar(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    copy, packed = tmp_path / "copy", tmp_path / "copy.tar"
    with served(tmp_path / "state") as service:
        with service.client("joe") as joe:
            joe.ask_access("vision", "for the paper")
        with service.client("root") as root:
            restoring.take(root.backup(), str(copy))
            restoring.take(root.backup(), "-")
    packed.write_bytes(capsysbinary.readouterr().out)
    for source in (copy, packed):
        state = tmp_path / f"from-{source.name}"
        done = restoring.restore(state, str(source))
        assert any(line.startswith("1 request to join a project restored") for line in done)
        assert asked(state) == ASKED
        again = restoring.restore(state, str(source))
        assert not any("to join a project" in line for line in again)


def test_access_requests_of_volume_are_restored_once(tmp_path: Path) -> None:
    with served(tmp_path / "volume") as service, service.client("joe") as joe:
        joe.ask_access("vision", "for the paper")
    copies = volume_copies.VolumeCopies(tmp_path / "copies", 3)
    volume_copies.copy_pool(tmp_path / "volume", copies)
    newest = copies.newest()
    assert newest is not None
    lost = tmp_path / "lost"
    (restored, *_) = volume_copies.restore_pool(lost, newest)
    assert "1 access request" in restored
    assert asked(lost) == ASKED
    (again, *_) = volume_copies.restore_pool(lost, newest)
    assert "0 access requests" in again
