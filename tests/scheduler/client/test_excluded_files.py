"""Excluded files are reported with reasons and counts, for any file name."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.client import snapshot
from benchpool_scheduler.client.snapshot import SnapshotLimits, survey, take

NAMES = [
    "Screenshot 2026-11-20 at 9.41.07\N{NARROW NO-BREAK SPACE}PM.png",
    "Sn\xedmek v\N{NO-BREAK SPACE}13.05.05.png",
    "team \N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}.txt",
    "soft\N{SOFT HYPHEN}hyphen.txt",
    "right-to-left\N{RIGHT-TO-LEFT MARK}.txt",
    "line\N{LINE SEPARATOR}.txt",
    "plain \N{ROCKET}.txt",
    "back\\slash.txt",
]


def test_names_with_any_character_are_sent(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).write_text(name)
    found = take(tmp_path)
    assert [file.path for file in found.files] == sorted(NAMES)
    assert found.sentences() == survey(tmp_path).sentences() == []


def test_exclusions_are_counted_by_reason_and_named_if_unusual(
    tmp_path: Path,
) -> None:
    for name in ("train.py", ".env", "a.pyc", "b.pyc", "tab\tname.txt", "large.bin"):
        (tmp_path / name).write_text("x" * 100 if name == "large.bin" else "x")
    (tmp_path / ".git").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    limits = SnapshotLimits(file_bytes=50)
    found = take(tmp_path, limits=limits)
    first, *named = found.sentences()
    travel, left = first.split("; left out: ")
    assert travel == "sent with the job: 1 file (1 bytes)"
    assert sorted(left.split(", ")) == [
        "1 × a link that leaves the folder",
        "1 × a name with a control character",
        "1 × larger than the limit for one file",
        "1 × looks like a secret",
        "1 × version control",
        "2 × a cache",
    ]
    assert [each.split(" (")[0] for each in named] == [
        "left out: .env",
        "left out: large.bin",
        "left out: link",
        "left out: tab\\tname.txt",
    ]
    assert survey(tmp_path, limits=limits).sentences() == found.sentences()


def test_file_named_by_caller_is_not_counted_as_excluded(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("x")
    assert take(tmp_path, must=[".env"]).sentences() == []
    assert survey(tmp_path, must=[".env"]).sentences() == []


def test_all_exclusions_are_counted_and_some_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MOST_LISTED", 25)
    for number in range(30):
        (tmp_path / f"{number:02}.pem").write_text("x")
    first, *named = take(tmp_path).sentences()
    assert first == "sent with the job: 0 files (0 bytes); left out: 30 × looks like a secret"
    assert len(named) == 21
    assert named[-1] == "left out: 10 more, counted above"
