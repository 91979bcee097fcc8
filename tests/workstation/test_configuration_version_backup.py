"""A backup includes the configuration's versions; a restore brings lost versions back."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.contract.configuration import ConfigurationEdit, Setting
from benchpool_scheduler.store import volume_copies
from benchpool_scheduler.store.configuration_versions import VersionFiles
from benchpool_scheduler.workstation import restoring
from benchpool_support.serving import served


def log_of(state: Path) -> list[tuple[int, str]]:
    kept = VersionFiles(state / "scheduler" / "configurations").newest(10)
    return [(one.version.number, one.version.reason) for one in kept]


def test_versions_are_restored_from_folder_and_tar(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    copy, packed = tmp_path / "copy", tmp_path / "copy.tar"
    with served(tmp_path / "state") as service, service.client("root") as root:
        root.set_config(ConfigurationEdit([Setting("projects.vision.quota", 1)], "spring"))
        restoring.take(root.backup(), str(copy))
        restoring.take(root.backup(), "-")
    packed.write_bytes(capsysbinary.readouterr().out)
    assert log_of(tmp_path / "state") == [(2, "spring"), (1, "")]
    for source in (copy, packed):
        state = tmp_path / f"from-{source.name}"
        done = restoring.restore(state, str(source))
        assert any(line.startswith("2 versions of the configuration restored") for line in done)
        assert log_of(state) == [(2, "spring"), (1, "")]
        again = restoring.restore(state, str(source))
        assert not any("of the configuration restored" in line for line in again)


def test_versions_of_volume_are_restored_once(tmp_path: Path) -> None:
    with served(tmp_path / "volume") as service, service.client("root") as root:
        root.set_config(ConfigurationEdit([Setting("projects.vision.quota", 1)], "spring"))
    copies = volume_copies.VolumeCopies(tmp_path / "copies", 3)
    volume_copies.copy_pool(tmp_path / "volume", copies)
    newest = copies.newest()
    assert newest is not None
    lost = tmp_path / "lost"
    (restored, *_) = volume_copies.restore_pool(lost, newest)
    assert "2 versions of the configuration" in restored
    assert log_of(lost) == [(2, "spring"), (1, "")]
    (again, *_) = volume_copies.restore_pool(lost, newest)
    assert "0 versions of the configuration" in again
