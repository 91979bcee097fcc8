"""The store in one SQLite file: one writer thread, readers that cannot write."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import psutil
from msgspec.structs import replace

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.store import hold, reading, repair
from benchpool_scheduler.store.lock import StoreLock
from benchpool_scheduler.store.records import Change, StoredContents
from benchpool_scheduler.store.writer import Writer

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "glusterfs", "ceph", "lustre"}
)

RECENT = 5_000
"""Number of newest ended jobs read before the service begins; the rest is read in background."""

LOCK_TRIES, LOCK_RETRY_S = 10, 0.05

UNUSED = (
    "SELECT sha256 FROM objects GROUP BY sha256 HAVING MAX(at) < ? "
    "AND NOT EXISTS (SELECT 1 FROM job_objects AS j WHERE j.sha256 = objects.sha256)"
)


class SqliteStore:
    """Store in ``<folder>/pool.sqlite``, locked by ``<folder>/pool.lock``.

    Args:
        lost: Called with a sentence when writing has stopped until a restart.
        progress: Called with the number of jobs read and their total, in another thread.
    """

    def __init__(
        self,
        folder: Path,
        *,
        lost: Callable[[str], None] | None = None,
        progress: Callable[[int, int], None] = lambda done, of: None,
    ) -> None:
        self._path = folder / "pool.sqlite"
        self._lock = StoreLock(folder / "pool.lock")
        self.writer = Writer(self._path, lost)
        self._progress = progress
        self._reader: sqlite3.Connection | None = None
        self._read_after: float | None = None

    async def open(self) -> StoredContents:
        """Lock the store and read all readable records. Errors: Unavailable.

        ``StoredContents.hold`` reports a database that is damaged, or missing although jobs have
        files.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        refuse_network_file_system(self._path.parent)
        await self._take_lock()
        try:
            repair.note_loss(self._path, self._path.parent.parent / "jobs")
            try:
                contents = await self._open_file()
            except (Unavailable, sqlite3.DatabaseError) as error:
                if isinstance(error, Unavailable) and error.code != "store-damaged":
                    raise
                await self._close_file()
                await asyncio.to_thread(repair.set_aside, self._path, _fault(error))
                contents = await self._open_file()
            return replace(contents, hold=hold.read(self._path))
        except BaseException:
            await self.close()
            raise

    async def _open_file(self) -> StoredContents:
        await self.writer.open()
        self._reader = reader = _open_reader(self._path)
        self._read_after = await asyncio.to_thread(reading.recent_end, reader, RECENT)
        read = partial(reading.read, reader, self._progress, after=self._read_after)
        return await asyncio.to_thread(read)

    async def older(self) -> StoredContents:
        """Return the ended jobs that were left out at the start. Errors: Unavailable."""
        until = self._read_after
        return StoredContents() if until is None else await asyncio.to_thread(self._older, until)

    def _older(self, until: float) -> StoredContents:
        try:
            with contextlib.closing(_open_reader(self._path)) as reader:
                return reading.read(reader, until=until)
        except sqlite3.DatabaseError as error:
            raise self.writer.public(error) from error

    async def _close_file(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        await self.writer.close()

    async def copy_to(self, target: Path) -> None:
        """Write a copy of the database while it is in use. Errors: Unavailable."""
        await self.writer.copy_to(target)

    async def release_hold(self) -> None:
        """Allow new jobs again, after an administrator's decision."""
        await asyncio.to_thread(hold.release, self._path)

    async def _take_lock(self) -> None:
        """Take the lock; retry briefly, as a child of a killed service may still hold it."""
        for _ in range(LOCK_TRIES - 1):
            with contextlib.suppress(Unavailable):
                self._lock.acquire()
                return
            await asyncio.sleep(LOCK_RETRY_S)
        self._lock.acquire()

    async def close(self) -> None:
        """Write pending changes, close the file and release the lock."""
        await self._close_file()
        self._lock.release()

    async def commit(
        self, *changes: Change, as_written: Callable[[str], None] | None = None
    ) -> None:
        """Apply all changes or none, durably, in one transaction. Errors: Unavailable."""
        await self.writer.commit(changes)

    def submission(self, job: str) -> bytes | None:
        """Return the submission of a job as JSON, or None when the job does not exist."""
        row = self._read("SELECT submission FROM jobs WHERE id = ?", (job,)).fetchone()
        return None if row is None else bytes(row[0])

    def objects_of(self, user: str, hashes: Iterable[str]) -> frozenset[str]:
        """Return the hashes that the user has uploaded."""
        found: set[str] = set()
        for chunk in _chunks(hashes, 500):
            marks = ", ".join("?" * len(chunk))
            sql = f"SELECT sha256 FROM objects WHERE user = ? AND sha256 IN ({marks})"  # noqa: S608
            found.update(row[0] for row in self._read(sql, (user, *chunk)))
        return frozenset(found)

    def stored_bytes(self, user: str) -> int:
        """Return the size in bytes of all stored objects that the user has uploaded."""
        sql = "SELECT COALESCE(SUM(size), 0) FROM objects WHERE user = ?"
        return int(self._read(sql, (user,)).fetchone()[0])

    async def unused_objects(self, before: float) -> tuple[str, ...]:
        """Return objects that no job references and no user has uploaded since ``before``."""
        return await asyncio.to_thread(self._unused, before)

    def _unused(self, before: float) -> tuple[str, ...]:
        # Uses its own connection: it scans all objects and must not block the loop's connection.
        try:
            with contextlib.closing(_open_reader(self._path)) as reader:
                return tuple(row[0] for row in reader.execute(UNUSED, (before,)))
        except sqlite3.DatabaseError as error:
            raise self.writer.public(error) from error

    async def forget_objects(self, hashes: Iterable[str]) -> None:
        """Remove these objects from the list of uploads."""
        rows = [(sha256,) for sha256 in hashes]
        await self.writer.run(
            lambda db: db.executemany("DELETE FROM objects WHERE sha256 = ?", rows).close()
        )

    def size(self) -> int:
        """Return the size of database and write-ahead log, in bytes."""
        files = (self._path, self._path.with_name(self._path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def _read(self, sql: str, parameters: tuple[object, ...]) -> sqlite3.Cursor:
        if self._reader is None:
            raise Unavailable("The store is closed; start the service again.")
        try:
            return self._reader.execute(sql, parameters)
        except sqlite3.DatabaseError as error:
            raise self.writer.public(error) from error


def _fault(error: Exception) -> str:
    """Return SQLite's message about a damaged file."""
    return str(error.__cause__ or error)


def _open_reader(path: Path) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?mode=ro"
    reader = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    reader.execute("PRAGMA trusted_schema = OFF")
    reader.execute("PRAGMA busy_timeout = 1000")
    return reader


def _chunks(values: Iterable[str], size: int) -> Iterator[tuple[str, ...]]:
    iterator = iter(values)
    while chunk := tuple(islice(iterator, size)):
        yield chunk


def refuse_network_file_system(folder: Path) -> None:
    """Reject a folder whose file locks and synchronisation are unreliable.

    Errors: Unavailable ``store-network``.
    """
    kind = file_system_of(folder)
    if kind in NETWORK_FILE_SYSTEMS:
        raise Unavailable(
            f"The state folder {folder} is on a network file system ({kind}), where a database "
            "can be damaged. Choose a folder on a local disk with --state.",
            code="store-network",
            numbers={"file_system": kind},
        )


def file_system_of(folder: Path) -> str:
    """Return the type of the file system of a folder, empty if unknown."""
    try:
        # A later mount at the same place hides an earlier one.
        mounts = [(Path(it.mountpoint), it.fstype) for it in psutil.disk_partitions(all=True)][::-1]
    except OSError:
        return ""
    place = folder.resolve()
    around = [(mount, kind) for mount, kind in mounts if place.is_relative_to(mount)]
    return max(around, key=lambda each: len(each[0].parts))[1] if around else ""
