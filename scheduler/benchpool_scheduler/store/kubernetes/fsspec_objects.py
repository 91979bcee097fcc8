"""Uploaded contents on any file system that fsspec supports, addressed by hash.

``<url>/ab/abcdef...`` is a content. ``<url>/by/u-NAME/abcdef...`` is an empty file for a user's
upload of it; its time is that of the last upload. A user may reference only contents that the same
user has uploaded. The uploads are also kept in memory, so a lookup needs no call. A content is
complete or absent: a local folder renames it into place, and an object store writes atomically.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote

import fsspec
from fsspec.implementations.local import LocalFileSystem

from benchpool_scheduler.errors import Unavailable


class FsspecObjects:
    """Contents and their uploads. All methods may block, so call them in a thread.

    Args:
        url: Location, e.g. ``file:///var/lib/benchpool/objects`` or ``s3://bucket/benchpool``.
        options: Options of the file system, e.g. ``{"anon": False}``.

    Errors: Unavailable ``objects-failed`` when the location cannot be reached or is full.
    """

    def __init__(self, url: str, **options: Any) -> None:
        self._fs, self._root = fsspec.core.url_to_fs(url, **options)
        self._local = isinstance(self._fs, LocalFileSystem)
        self.url = url

    # ------------------------------------------------------------------ contents

    def put(self, sha256: str, file: Path) -> None:
        """Move a local file with this hash into the store; it is durable on return."""
        target = self._content(sha256)
        with _public_errors(self.url):
            self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
            if not self._local:
                self._fs.put_file(str(file), target)
                file.unlink(missing_ok=True)
                return
            # Renaming is atomic on one file system only.
            near = f"{target}.{os.getpid()}.{time.monotonic_ns()}"
            shutil.move(file, near)
            _settle(Path(near), Path(target))

    def put_bytes(self, sha256: str, data: bytes) -> None:
        """Store a content with this hash."""
        target = self._content(sha256)
        with _public_errors(self.url):
            self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
            near = f"{target}.{time.monotonic_ns()}" if self._local else target
            self._fs.pipe_file(near, data)
            if self._local:
                _settle(Path(near), Path(target))

    def put_listed(self, data: bytes) -> str:
        """Store a content of the scheduler's own and return its hash."""
        sha256 = hashlib.sha256(data).hexdigest()
        self.put_bytes(sha256, data)
        return sha256

    def open(self, sha256: str) -> IO[bytes]:
        """Open a content for reading. Errors: FileNotFoundError."""
        with _public_errors(self.url):
            opened: IO[bytes] = self._fs.open(self._content(sha256), "rb")
            return opened

    def read(self, sha256: str) -> bytes:
        """Return a content. Errors: FileNotFoundError."""
        with self.open(sha256) as file:
            return file.read()

    def has(self, sha256: str) -> bool:
        """Return whether the content exists."""
        with _public_errors(self.url):
            return bool(self._fs.exists(self._content(sha256)))

    def delete(self, sha256: str) -> None:
        """Delete a content; a missing content is no error."""
        with _public_errors(self.url), contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._content(sha256))

    # ------------------------------------------------------------------ uploads by user

    def load(self) -> dict[str, dict[str, float]]:
        """Return the last upload time by user for each hash, in seconds since the epoch."""
        found: dict[str, dict[str, float]] = {}
        with _public_errors(self.url):
            self._fs.makedirs(f"{self._root}/by", exist_ok=True)
            listed: dict[str, dict[str, Any]] = self._fs.find(f"{self._root}/by", detail=True)
        for path, about in listed.items():
            user, _, sha256 = path.rpartition("/by/")[2].partition("/")
            if user.startswith("u-") and sha256:
                found.setdefault(sha256, {})[unquote(user[2:])] = _time_of(about)
        return found

    def sizes(self) -> dict[str, int]:
        """Return the size of every content in bytes, by hash."""
        with _public_errors(self.url):
            listed: dict[str, dict[str, Any]] = self._fs.find(self._root, detail=True)
        names = ((path.rpartition("/")[2], path, about) for path, about in listed.items())
        return {
            name: int(about.get("size") or 0)
            for name, path, about in names
            if path.endswith(f"/{name[:2]}/{name}")
        }

    def mark(self, sha256: str, user: str) -> None:
        """Record that a user has uploaded a content now."""
        marker = self._marker(sha256, user)
        with _public_errors(self.url):
            self._fs.makedirs(marker.rpartition("/")[0], exist_ok=True)
            self._fs.pipe_file(marker, b"")

    def unmark(self, sha256: str, users: Iterable[str]) -> None:
        """Remove the record that these users have uploaded a content."""
        for user in users:
            with _public_errors(self.url), contextlib.suppress(FileNotFoundError):
                self._fs.rm_file(self._marker(sha256, user))

    def _content(self, sha256: str) -> str:
        return f"{self._root}/{sha256[:2]}/{sha256}"

    def _marker(self, sha256: str, user: str) -> str:
        # A user name may be anything, even ``..``; the prefix makes it the name of one folder.
        return f"{self._root}/by/u-{quote(user, safe='')}/{sha256}"


def _settle(near: Path, target: Path) -> None:
    """Rename a file into place, durably."""
    with near.open("rb") as file:
        os.fsync(file.fileno())
    near.replace(target)
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _time_of(about: dict[str, Any]) -> float:
    for key in ("mtime", "LastModified", "last_modified", "updated", "created"):
        value = about.get(key)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, int | float):
            return float(value)
    return time.time()


@contextlib.contextmanager
def _public_errors(url: str) -> Any:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as failed:
        raise Unavailable(
            f"Uploaded files cannot be stored in {url} ({failed}). Check that it exists, has free "
            "space and is writable for benchpool.",
            code="objects-failed",
        ) from failed
