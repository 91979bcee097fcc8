"""Content-addressed files of snapshots and notebooks, uploaded by users.

Each content is stored once, in ``objects/ab/abcdef...`` or wherever a site keeps them. A user may
still name only contents that this user has uploaded, so a hash alone gives no access.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Protocol

from benchpool_scheduler.errors import InvalidInput, TooLarge, TooMany, Unavailable
from benchpool_scheduler.phrases import exactly
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.records import AddObject

GIB = 1024**3
OBJECT_BYTES = 2 * GIB
PIECE = 1 << 20
"""Minimum size of the pieces in which an upload is written, in bytes; at most two are in memory."""
DELETED = 200
"""Maximum number of contents deleted at once."""


class Digest(Protocol):
    """Hash that is being computed."""

    def update(self, data: bytearray, /) -> None:
        """Add bytes."""


class ContentStore(Protocol):
    """Store of contents; its calls may block."""

    def put(self, sha256: str, file: Path) -> None:
        """Store a local file with this hash durably, and remove the local file."""

    def open(self, sha256: str) -> IO[bytes]:
        """Open a content for reading. Errors: FileNotFoundError."""

    def delete(self, sha256: str) -> None:
        """Delete a content; a missing one is no error."""


class ContentFolder:
    """Contents in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, sha256: str) -> Path:
        """Return the path of a content."""
        return self._folder / sha256[:2] / sha256

    def put(self, sha256: str, file: Path) -> None:
        """Store a file by renaming it."""
        target = self.path(sha256)
        with _disk():
            target.parent.mkdir(exist_ok=True, mode=0o700)
            file.rename(target)
            folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def open(self, sha256: str) -> IO[bytes]:
        """Open a content. Errors: FileNotFoundError."""
        return self.path(sha256).open("rb")

    def delete(self, sha256: str) -> None:
        """Delete a content."""
        self.path(sha256).unlink(missing_ok=True)


class UploadedContents:
    """All uploaded contents.

    Args:
        place: Store of the contents; by default the state folder.
    """

    def __init__(
        self, ledger: Ledger, observed: SchedulerState, place: ContentStore | None = None
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._incoming = observed.settings.state / "objects" / "incoming"
        self._coming: Counter[str] = Counter()
        self._stored: dict[str, int] = {}
        self.place = place or ContentFolder(observed.settings.state / "objects")
        self.needed: Callable[[], set[str]] = set
        """Returns the hashes that future jobs need, e.g. those of schedules."""

    def prepare(self) -> None:
        """Create the folder of uploads and delete the remains of unfinished ones."""
        incoming = self._incoming
        incoming.mkdir(parents=True, exist_ok=True, mode=0o700)
        for file in incoming.iterdir():
            file.unlink(missing_ok=True)

    def present(self, user: str, hashes: Iterable[str]) -> frozenset[str]:
        """Return the hashes that the user has uploaded."""
        return self._ledger.store.objects_of(user, hashes)

    def missing(self, caller: Caller, hashes: Iterable[str]) -> list[str]:
        """Return the hashes that this caller has not uploaded, in the given order."""
        wanted = list(hashes)
        present = self.present(caller.name, wanted)
        return [sha256 for sha256 in wanted if sha256 not in present]

    def writer(self, caller: Caller, sha256: str, size: int) -> ObjectWriter:
        """Return a writer (``await write(bytes)``, ``await close()``, ``abort()``) for an object.

        ``close`` verifies length and hash; only then does the object exist.

        Errors: InvalidInput, TooLarge, TooMany, Unavailable when the disk is full.
        """
        if size > OBJECT_BYTES:
            raise TooLarge(
                f"The file has {size} bytes; {OBJECT_BYTES} are allowed. Keep data where jobs can "
                "read it and send its path.",
                numbers={"bytes": size, "limit": OBJECT_BYTES},
            )
        if size < 0:
            raise InvalidInput(f"The size is {size}; it must be 0 or more.", field="size")
        if caller.kind == "user":
            self._check_budget(caller.name, sha256, size)
        writer = ObjectWriter(self, caller.name, sha256, size)
        self._coming[caller.name] += size
        return writer

    def _check_budget(self, user: str, sha256: str, size: int) -> None:
        configuration, coming = self._observed.now.configuration, self._coming[user] + size
        budgets, kept_s = configuration.budgets, configuration.retention.uploads_days * 86_400
        if size > budgets.uploads_gib * GIB:
            raise TooLarge(
                f"The file has {size} bytes; uploads of {budgets.uploads_gib} GiB together are "
                "allowed. Keep data where jobs can read it and send its path; an administrator "
                "can raise budgets.uploads_gib.",
                numbers={"bytes": size, "limit": budgets.uploads_gib * GIB},
            )
        if coming > budgets.uploads_gib * GIB:
            raise TooMany(
                f"Running uploads of {user} have {coming} bytes with this one; "
                f"{budgets.uploads_gib} GiB are allowed. Wait until some have ended.",
                code="too-many-uploads",
                numbers={"bytes": coming, "limit": budgets.uploads_gib * GIB},
            )
        stored = self._stored_by(user) + coming
        if stored > budgets.stored_gib * GIB and not self.present(user, [sha256]):
            raise TooLarge(
                f"Contents that {user} has uploaded have {stored} bytes with this one; "
                f"{budgets.stored_gib} GiB are allowed. Contents without a job are removed "
                f"{exactly(kept_s)} after their upload; an administrator can raise "
                "budgets.stored_gib.",
                code="stored-contents",
                numbers={"bytes": stored, "limit": budgets.stored_gib * GIB},
            )

    def _stored_by(self, user: str) -> int:
        if user not in self._stored:
            self._stored[user] = self._ledger.store.stored_bytes(user)
        return self._stored[user]

    def ended(self, user: str, size: int) -> None:
        """Count an upload of an announced size as ended, successfully or not."""
        self._coming[user] -= size
        if not self._coming[user]:
            del self._coming[user]

    def temporary(self) -> Path:
        """Return a new name for an unfinished upload."""
        return self._incoming / self._observed.settings.new_id()

    async def keep(self, user: str, sha256: str, size: int) -> None:
        """Record that a user has uploaded a stored content."""
        await self._ledger.store.commit(
            AddObject(sha256, user, size, self._observed.settings.clock.now())
        )
        self._stored.pop(user, None)

    async def collect(self, before: float) -> None:
        """Delete contents that no job needs and that were not uploaded since ``before``."""
        needed = self.needed()
        unused = [it for it in await self._ledger.store.unused_objects(before) if it not in needed]
        for first in range(0, len(unused), DELETED):
            some = unused[first : first + DELETED]
            await self._ledger.store.forget_objects(some)
            self._stored.clear()
            await asyncio.to_thread(self._delete, some)

    def _delete(self, hashes: Iterable[str]) -> None:
        for sha256 in hashes:
            self.place.delete(sha256)


class ObjectWriter:
    """Receiver of one object, which exists only after ``close`` has verified length and hash.

    Bytes are buffered, and hashed and written in a thread while the next ones arrive.
    """

    def __init__(self, objects: UploadedContents, user: str, sha256: str, size: int) -> None:
        self._objects = objects
        self._user = user
        self._sha256 = sha256
        self._size = size
        self._received = 0
        self._hash = hashlib.sha256()
        self._gathered = bytearray()
        self._writing: asyncio.Task[None] | None = None
        self._temporary = objects.temporary()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with _disk():
            self._file: int | None = os.open(self._temporary, flags, 0o600)

    async def write(self, data: bytes) -> None:
        """Add bytes. Errors: TooLarge beyond the announced size, Unavailable."""
        self._received += len(data)
        if self._received > self._size:
            self.abort()
            raise TooLarge(
                f"The upload has more than the announced {self._size} bytes. Send the file again.",
                code="upload-grew",
                numbers={"announced": self._size},
            )
        if self._file is None:
            raise InvalidInput("The upload is closed.")
        self._gathered += data
        if len(self._gathered) >= PIECE:
            await self._pass_on(self._file)

    async def _pass_on(self, file: int) -> None:
        """Start writing the buffer, once the previous piece is written."""
        await self._settled()
        piece, self._gathered = self._gathered, bytearray()
        self._writing = asyncio.create_task(asyncio.to_thread(_take, file, self._hash, piece))

    async def _settled(self) -> None:
        if self._writing is not None:
            # Shielded, because the thread runs on even if this task is cancelled.
            await asyncio.shield(self._writing)
            self._writing = None

    async def close(self) -> None:
        """Verify and store the object. Errors: InvalidInput if hash or length differ."""
        if self._file is None:
            return
        await self._pass_on(self._file)
        await self._settled()
        if self._received != self._size or self._hash.hexdigest() != self._sha256:
            self.abort()
            raise InvalidInput(
                f"{self._received} of {self._size} bytes arrived, and their hash is "
                f"{self._hash.hexdigest()[:12]}, not {self._sha256[:12]}. The file changed on the "
                "way. Send it again.",
                code="hash-differs",
                numbers={"bytes": self._received, "announced": self._size},
            )
        file, self._file = self._file, None
        try:
            await asyncio.to_thread(
                _settle, file, self._temporary, self._sha256, self._objects.place
            )
            await self._objects.keep(self._user, self._sha256, self._size)
        finally:
            self._objects.ended(self._user, self._size)

    def abort(self) -> None:
        """Delete the written bytes; does nothing after ``close``."""
        if self._file is None:
            return
        file, self._file = self._file, None
        self._objects.ended(self._user, self._size)
        if self._writing is None or self._writing.done():
            self._drop(file, self._writing)
        else:  # the file is closed when the writing thread is done
            self._writing.add_done_callback(lambda written: self._drop(file, written))

    def _drop(self, file: int, written: asyncio.Task[None] | None) -> None:
        os.close(file)
        self._temporary.unlink(missing_ok=True)
        failed = None if written is None or written.cancelled() else written.exception()
        if failed is not None:
            logging.getLogger(__name__).info("an abandoned upload failed: %s", failed)


def _take(file: int, digest: Digest, data: bytearray) -> None:
    digest.update(data)
    _write_all(file, data)


def _write_all(file: int, data: bytearray) -> None:
    with _disk():
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]


def _settle(file: int, temporary: Path, sha256: str, place: ContentStore) -> None:
    try:
        with _disk():
            os.fsync(file)
        place.put(sha256, temporary)
    finally:
        os.close(file)
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _disk() -> Iterator[None]:
    """Turn an error of a full disk into Unavailable."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Unavailable(
                "The disk of the pool's state folder is full, so nothing can be uploaded. An "
                "administrator must free space on it. Try again then.",
                code="store-full",
            ) from None
        raise
