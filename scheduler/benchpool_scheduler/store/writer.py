"""The only writer thread: commits in groups, and makes all checkpoints of the log.

Submissions that wait at the same time share one synchronised transaction, so their rate is not
limited by the disk's latency. A group is committed as a whole. When that fails, each member is
tried alone, so that a bad change fails only itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.store import copies, schema, statements
from benchpool_scheduler.store.copies import write_copy
from benchpool_scheduler.store.presence import FileState, Presence
from benchpool_scheduler.store.records import Change, Conflict

GROUP = 1000
IDLE_S = 5.0
PIECE = 250
"""Pages freed in one step: a delay of some milliseconds for a concurrent commit."""

DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

Work = Callable[[sqlite3.Connection], None]


@dataclass(frozen=True, slots=True)
class _Request:
    work: Work
    done: asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class _Copy:
    target: Path
    done: asyncio.Future[None]


class Writer:
    """Owner of the only read-write connection.

    Args:
        path: The database file, created when missing.
        lost: Called in the loop, with a sentence, when the thread has ended unexpectedly.
    """

    def __init__(self, path: Path, lost: Callable[[str], None] | None = None) -> None:
        self._path = path
        self._lost = lost
        self._waiting: set[asyncio.Future[None]] = set()
        self._ended: Unavailable | None = None
        self._requests: queue.SimpleQueue[_Request | _Copy | None] = queue.SimpleQueue()
        self._copies: deque[_Copy] = deque()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        """Start the thread; open, check and migrate the file. Errors: Unavailable."""
        self._loop = asyncio.get_running_loop()
        self._requests = queue.SimpleQueue()
        opened = self._loop.create_future()
        self._thread = threading.Thread(
            target=self._run, args=(opened,), name="benchpool-store", daemon=True
        )
        self._thread.start()
        await opened

    async def close(self) -> None:
        """Commit pending changes, empty the write-ahead log and end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._requests.put(None)
            await asyncio.to_thread(thread.join)

    async def commit(self, changes: Sequence[Change]) -> None:
        """Commit the changes in one transaction; it is on disk when this returns."""

        def work(db: sqlite3.Connection) -> None:
            for change in changes:
                statements.apply(db, change)

        await self.run(work)

    async def run(self, work: Work) -> None:
        """Run statements inside a transaction. Errors: Unavailable."""
        await self._ask(lambda done: _Request(work, done))

    async def copy_to(self, target: Path) -> None:
        """Write a copy of the whole database as it is at the end; commits continue meanwhile.

        Errors: Unavailable.
        """
        await self._ask(lambda done: _Copy(target, done))

    async def _ask(self, request: Callable[[asyncio.Future[None]], _Request | _Copy]) -> None:
        if self._thread is None or self._loop is None:
            raise Unavailable("The store is closed; start the service again.")
        if self._ended is not None:
            raise self._ended
        done: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(done)
        done.add_done_callback(self._waiting.discard)
        self._requests.put(request(done))
        # A cancelled caller must not cancel a request that other callers may wait for.
        await asyncio.shield(done)

    # ------------------------------------------------------------------ the thread

    def _run(self, opened: asyncio.Future[None]) -> None:
        try:
            connection = _connect(self._path)
        except Exception as error:
            self._answer([(opened, _public(error, self._path))])
            return
        self._presence = Presence(self._path)
        self._answer([(opened, None)])
        try:
            self._serve(connection)
        except BaseException as error:
            # After any error, pending commits are answered and nothing is written any more. A
            # closed loop has no pending commits.
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._report_end, error)
        finally:
            connection.close()

    def _report_end(self, error: BaseException) -> None:
        """Fail all pending requests and report the end of the thread; runs in the loop."""
        why = str(error) if isinstance(error, Unavailable | sqlite3.Error) else repr(error)
        self._ended = Unavailable(
            f"The writer of {self._path} has stopped ({why}). Nothing is accepted until the "
            "scheduler has restarted itself.",
            code="store-ended",
        )
        _settle([(done, self._ended) for done in tuple(self._waiting)])
        if self._lost is not None:
            self._lost(f"the writer of {self._path} has stopped ({why}).")

    def _serve(self, connection: sqlite3.Connection) -> None:
        dirty = False
        while True:
            try:
                first = self._requests.get(timeout=IDLE_S)
            except queue.Empty:
                self._check_place(connection)
                if dirty:
                    self._shrink(connection)
                    _truncate(connection)
                dirty = False
                continue
            if first is None:
                _truncate(connection)
                return
            last = self._take(connection, first)
            while self._copies:
                last |= self._copy(connection, self._copies.popleft())
            dirty = True
            if last:
                _truncate(connection)
                return

    def _shrink(self, connection: sqlite3.Connection) -> None:
        """Return free pages to the disk in steps, until a commit is requested."""
        with contextlib.suppress(sqlite3.Error):
            while self._requests.empty():
                if not connection.execute("PRAGMA freelist_count").fetchone()[0]:
                    return
                connection.execute(f"PRAGMA incremental_vacuum({PIECE})").fetchall()

    def _take(self, connection: sqlite3.Connection, first: _Request | _Copy | None) -> bool:
        """Commit pending requests; return whether the thread must end."""
        group, last = self._gather(first)
        self._check_place(connection)
        if group:
            self._answer(self._commit(connection, group))
        return last

    def _gather(self, first: _Request | _Copy | None) -> tuple[list[_Request], bool]:
        group: list[_Request] = []
        request = first
        while request is not None:
            if isinstance(request, _Copy):
                self._copies.append(request)
            else:
                group.append(request)
            if len(group) >= GROUP:
                return group, False
            try:
                request = self._requests.get_nowait()
            except queue.Empty:
                return group, False
        return group, True

    def _copy(self, connection: sqlite3.Connection, copy: _Copy) -> bool:
        """Write a copy with SQLite's backup API; return whether the thread must end.

        Pending requests are committed between two steps. As the same connection commits them,
        SQLite adds them to the copy too.
        """
        last = False

        def between(*_: int) -> None:
            nonlocal last
            try:
                request = self._requests.get_nowait()
            except queue.Empty:
                return
            last |= self._take(connection, request)

        error: Exception | None = None
        try:
            write_copy(connection, copy.target, between)
        except (sqlite3.Error, OSError) as failed:
            error = _not_copied(failed, copy.target)
        self._answer([(copy.done, error)])
        return last

    def _check_place(self, connection: sqlite3.Connection) -> None:
        """Raise, to end the thread, if the file was replaced or deleted; write a deleted file
        back.
        """
        found = self._presence.look()
        if found is FileState.OURS:
            return
        if found is FileState.ANOTHER:
            self._presence.drop_log()
            raise Unavailable(
                f"the database {self._path} was replaced by another file while it was open",
                code="store-replaced",
            )
        self._presence.write_back(connection)
        raise Unavailable(
            f"the database {self._path} was deleted while it was open, and was written again in "
            "full",
            code="store-deleted",
        )

    def public(self, error: Exception) -> Exception:
        """Return the public form of an error; report a damaged file, which is not written again."""
        shown = _public(error, self._path)
        if isinstance(shown, Unavailable) and shown.code == "store-damaged" and self._lost:
            self._lost(shown.message)
        return shown

    def _commit(
        self, connection: sqlite3.Connection, group: list[_Request]
    ) -> list[tuple[asyncio.Future[None], Exception | None]]:
        error = _transaction(connection, [request.work for request in group])
        if error is not None and _code(error) in DAMAGED:
            raise error  # a damaged file must not be written
        if error is None:
            return [(request.done, None) for request in group]
        if len(group) == 1:
            return [(group[0].done, _public(error, self._path))]
        return [answer for request in group for answer in self._commit(connection, [request])]

    def _answer(self, answers: list[tuple[asyncio.Future[None], Exception | None]]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_settle, answers)


def _settle(answers: list[tuple[asyncio.Future[None], Exception | None]]) -> None:
    for future, error in answers:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


def _not_copied(error: Exception, target: Path) -> Unavailable:
    return Unavailable(
        f"The copy {target} could not be written ({error}). Nothing was changed. Check that its "
        "disk has free space.",
        code="copy-failed",
    )


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        schema.configure(connection)
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            damaged = sqlite3.DatabaseError(str(verdict).replace("\n", " ")[:200])
            damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise damaged
        if (version := schema.outdated(connection)) is not None:
            copies.before_migration(connection, path, version)
        schema.migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _transaction(connection: sqlite3.Connection, group: Sequence[Work]) -> Exception | None:
    try:
        connection.execute("BEGIN IMMEDIATE")
        for work in group:
            work(connection)
        connection.execute("COMMIT")
    except Exception as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return error
    return None


def _truncate(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error:
        # A reader is busy or the disk is full; the log is complete, so a later try is enough.
        return


def _code(error: Exception) -> int:
    """Return SQLite's primary result code, 0 for other errors."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def _public(error: Exception, path: Path) -> Exception:
    """Return the public form of an error: a disk fault is Unavailable, a broken rule Conflict."""
    if isinstance(error, sqlite3.IntegrityError):
        return Conflict(str(error))
    if not isinstance(error, sqlite3.Error):
        return error
    code = _code(error)
    if code == sqlite3.SQLITE_FULL:
        return Unavailable(
            f"The disk of {path.parent} is full. Nothing can be accepted; running jobs continue. "
            "Try again when an administrator has freed space on it.",
            code="store-full",
        )
    if code in DAMAGED:
        damage = Unavailable(
            f"The database {path} is damaged ({error}). The scheduler restarts and recovers the "
            "readable rows.",
            code="store-damaged",
        )
        damage.__cause__ = error
        return damage
    return Unavailable(
        f"The database {path} cannot be used ({error}). Check the disk and its permissions.",
        code="store-failed",
    )
