"""Copies of cluster volumes, made by the program that the pods run."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from pathlib import Path

import pytest

from benchpool_scheduler.app import copying
from benchpool_scheduler.store.audit_copies import same_size
from benchpool_scheduler.store.kubernetes import FsspecObjects

TRAIL = "scheduler/audit/000000000001.jsonl"


def run(act: str, part: str, volume: Path, copies: Path, kept: int = 7) -> int:
    words = [act, part, f"--at={volume}", f"--copies={copies}", f"--kept={kept}"]
    return copying.main(words)


def users(database: Path) -> list[str]:
    with sqlite3.connect(database) as connection:
        return [row[0] for row in connection.execute("SELECT name FROM users ORDER BY name")]


def hub(volume: Path, *names: str) -> sqlite3.Connection:
    """Return an open Hub database with a commit that exists only in its write-ahead log."""
    volume.mkdir(exist_ok=True)
    connection = sqlite3.connect(volume / "jupyterhub.sqlite")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE IF NOT EXISTS users (name TEXT)")
    connection.executemany("INSERT INTO users VALUES (?)", [(name,) for name in names])
    connection.commit()
    return connection


def pool(volume: Path, *contents: bytes) -> FsspecObjects:
    objects = FsspecObjects(f"file://{volume}/objects")
    for data in contents:
        objects.mark(objects.put_listed(data), "../joe")
    curves = ("scheduler/curves/abcd.jsonl", "[1,[]]\n[1")
    past = ("scheduler/past-jobs/2026-11.jsonl", "{}\n{ha")
    for name, text in ((TRAIL, "{}\n{}\n{half"), past, curves):
        (volume / name).parent.mkdir(parents=True, exist_ok=True)
        (volume / name).write_text(text)
    return objects


def test_hub_database_in_use_is_copied_and_restored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    volume, copies = tmp_path / "hub", tmp_path / "copies"
    open_ = hub(volume, "joe", "susan")
    assert run("copy", "hub", volume, copies) == 0
    open_.execute("INSERT INTO users VALUES ('later')")
    open_.commit()
    open_.close()
    (first,) = (copies / "hub").iterdir()
    assert users(first / "jupyterhub.sqlite") == ["joe", "susan"]
    assert run("copy", "hub", volume, copies) == 0
    monkeypatch.setenv("BENCHPOOL_COPY", first.name)
    assert run("restore", "hub", volume, copies) == 0
    assert users(volume / "jupyterhub.sqlite") == ["joe", "susan"]
    (aside,) = volume.glob("jupyterhub.sqlite.*-replaced")
    assert users(aside) == ["joe", "later", "susan"]
    assert str(aside) in capsys.readouterr().out


def test_damaged_copy_is_not_restored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    volume, copies = tmp_path / "hub", tmp_path / "copies"
    hub(volume, "joe").close()
    assert run("copy", "hub", volume, copies) == 0
    (copy,) = (copies / "hub").iterdir()
    (copy / "jupyterhub.sqlite").write_bytes(b"nothing of the kind")
    assert run("restore", "hub", volume, copies) == 1
    assert "Nothing was changed" in capsys.readouterr().err
    assert users(volume / "jupyterhub.sqlite") == ["joe"]


def test_lost_pool_volume_is_restored_with_uploaders(tmp_path: Path) -> None:
    volume, copies = tmp_path / "pool", tmp_path / "copies"
    objects = pool(volume, b"one", b"two")
    loaded = objects.load()
    (volume / "objects" / "aa").mkdir(exist_ok=True)
    (volume / "objects" / "aa" / f"{'a' * 64}.77.1").write_bytes(b"under way")
    (volume / "scheduler/in-force.yaml").write_text("version: 1\n")
    assert run("copy", "pool", volume, copies) == 0
    volume.rename(tmp_path / "lost")
    volume.mkdir()
    assert run("restore", "pool", volume, copies) == 0
    again = FsspecObjects(f"file://{volume}/objects")
    assert again.load() == loaded
    assert {again.read(it) for it in again.sizes()} == {b"one", b"two"}
    assert again.sizes().keys() == loaded.keys()
    assert (volume / TRAIL).read_text() == "{}\n{}\n"  # complete lines only
    assert (volume / "scheduler/past-jobs/2026-11.jsonl").read_text() == "{}\n"
    assert (volume / "scheduler/curves/abcd.jsonl").read_text() == "[1,[]]\n"
    assert (volume / "scheduler/in-force.yaml").read_text() == "version: 1\n"


def test_existing_files_survive_restore(tmp_path: Path) -> None:
    volume, copies = tmp_path / "pool", tmp_path / "copies"
    objects = pool(volume, b"one")
    assert run("copy", "pool", volume, copies) == 0
    later = objects.put_listed(b"later")
    (volume / TRAIL).write_text("{}\n{}\n{later}\n")
    assert run("restore", "pool", volume, copies) == 0
    assert objects.read(later) == b"later"
    assert (volume / TRAIL).read_text() == "{}\n{}\n{later}\n"


def test_unchanged_contents_are_linked_and_oldest_copies_deleted(
    tmp_path: Path,
) -> None:
    volume, copies = tmp_path / "pool", tmp_path / "copies"
    pool(volume, b"x" * 4096)
    name = hashlib.sha256(b"x" * 4096).hexdigest()
    for _ in range(4):
        assert run("copy", "pool", volume, copies, kept=2) == 0
    left = sorted((copies / "pool").iterdir())
    assert len(left) == 2
    files = [it / "objects" / name[:2] / name for it in left]
    assert os.path.samefile(*files)
    assert same_size(files[0], volume / "objects" / name[:2] / name)


def test_failed_copy_keeps_earlier_copies_and_reports_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    volume, copies = tmp_path / "hub", tmp_path / "copies"
    hub(volume, "joe").close()
    assert run("copy", "hub", volume, copies, kept=1) == 0
    before = list((copies / "hub").iterdir())
    (volume / "jupyterhub.sqlite").write_bytes(b"no database" * 1000)
    assert run("copy", "hub", volume, copies, kept=1) == 1
    assert "could not be copied" in capsys.readouterr().err
    assert list((copies / "hub").iterdir()) == before


def test_unknown_copy_is_rejected_with_list_of_copies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    volume, copies = tmp_path / "hub", tmp_path / "copies"
    hub(volume, "joe").close()
    assert run("copy", "hub", volume, copies) == 0
    assert run("list", "hub", volume, copies) == 0
    listed = capsys.readouterr().out.splitlines()[-1]
    monkeypatch.setenv("BENCHPOOL_COPY", "2026-01-01T000000.000000Z-daily")
    assert run("restore", "hub", volume, copies) == 1
    assert listed in capsys.readouterr().err
