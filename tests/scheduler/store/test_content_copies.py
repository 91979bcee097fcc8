"""Code of jobs in copies: only needed and complete contents, and a restore keeps existing ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

from benchpool_scheduler.store import content_copies


def stored(objects: Path, content: bytes) -> str:
    sha256 = hashlib.sha256(content).hexdigest()
    place = objects / sha256[:2] / sha256
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return sha256


def contents(objects: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in objects.glob("*/*")}


def test_only_needed_contents_are_copied_and_restored(tmp_path: Path) -> None:
    objects, copy, other = (tmp_path / name for name in ("objects", "copy", "other"))
    one, _ = stored(objects, b"one"), stored(objects, b"of an ended job")
    content_copies.copy_into(objects, copy, {one, "f" * 64})
    assert contents(copy) == {one: b"one"}
    assert content_copies.put_back(copy, other) == content_copies.ContentsPutBack(put=1, damaged=0)
    assert contents(other) == {one: b"one"}
    assert content_copies.put_back(copy, other) == content_copies.ContentsPutBack(put=0, damaged=0)


def test_content_with_wrong_hash_is_not_restored(tmp_path: Path) -> None:
    objects, copy = tmp_path / "objects", tmp_path / "copy"
    one = stored(copy, b"one")
    (copy / one[:2] / one).write_bytes(b"cut")
    (copy / one[:2] / "README").write_bytes(b"none of ours")
    assert content_copies.put_back(copy, objects) == content_copies.ContentsPutBack(
        put=0, damaged=1
    )
    assert contents(objects) == {}


def test_tar_entries_are_limited_to_content_names() -> None:
    good = f"objects/aa/{64 * 'a'}"
    assert content_copies.NAME.fullmatch(good)
    for name in (f"objects/../{64 * 'a'}", f"{good}/x", f"objects/aa/{63 * 'a'}", f"/{good}"):
        assert not content_copies.NAME.fullmatch(name)
