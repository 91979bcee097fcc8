"""Uploaded contents through fsspec, with equal behaviour on folders and object stores."""

from __future__ import annotations

import hashlib
import secrets
import time
from pathlib import Path

import pytest

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.store.kubernetes import FsspecObjects

HELLO = b"print('hello')"
SHA256 = hashlib.sha256(HELLO).hexdigest()


@pytest.fixture(params=["file", "memory"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> FsspecObjects:
    """Return an object store for one test."""
    if request.param == "file":
        return FsspecObjects(f"file://{tmp_path}/objects")
    return FsspecObjects(f"memory://{secrets.token_hex(4)}")


def test_content_is_complete_or_absent(objects: FsspecObjects, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        objects.open(SHA256)
    assert not objects.has(SHA256)
    upload = tmp_path / "upload"
    upload.write_bytes(HELLO)
    objects.put(SHA256, upload)
    assert not upload.exists()
    assert objects.has(SHA256)
    assert objects.read(SHA256) == HELLO
    assert objects.put_listed(HELLO) == SHA256
    objects.delete(SHA256)
    objects.delete(SHA256)
    assert not objects.has(SHA256)


@pytest.mark.parametrize("user", ["susan", "..", "a/b", "ü %2F", "u-x"])
def test_uploader_is_known_for_any_user_name(objects: FsspecObjects, user: str) -> None:
    assert objects.load() == {}
    objects.mark(SHA256, user)
    objects.mark(SHA256, "joe")
    known = objects.load()
    assert set(known) == {SHA256}
    assert set(known[SHA256]) == {user, "joe"}
    assert abs(known[SHA256][user] - time.time()) < 60
    objects.unmark(SHA256, [user, "nobody"])
    assert set(objects.load()[SHA256]) == {"joe"}


def test_unwritable_object_store_is_reported(tmp_path: Path) -> None:
    (tmp_path / "objects").write_text("a file, no folder")
    objects = FsspecObjects(f"file://{tmp_path}/objects")
    with pytest.raises(Unavailable, match="Check that it exists"):
        objects.mark(SHA256, "susan")


def test_user_names_stay_inside_object_store(tmp_path: Path) -> None:
    objects = FsspecObjects(f"file://{tmp_path}/objects")
    for user in ("..", "../..", "/etc"):
        objects.mark(SHA256, user)
    found = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*")}
    assert found == {"objects"}
