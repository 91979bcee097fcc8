"""The audit trail on disk: append-only files of JSON lines, chained by hashes.

A line is one record. Its hash covers the record and the hash of the line before, so a changed,
removed or inserted line breaks all later hashes. A new file begins after ``FILE_BYTES``. Files
whose newest line is older than ``KEEP_S`` are deleted whole.

One thread writes. Records that wait at the same time share one flush to the disk.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from benchpool_scheduler.contract.audit import (
    AuditCheck,
    AuditOutcome,
    AuditPage,
    AuditQuery,
    AuditRecord,
)
from benchpool_scheduler.phrases import data_size
from benchpool_scheduler.store import whole_files
from benchpool_scheduler.store.appending import append_whole

FILE_BYTES = 8 * 1024 * 1024
KEEP_S = 400 * 24 * 3600.0
"""Retention of audit records, in seconds: 400 days, so that a yearly audit still finds them."""

GROUP = 1000
NO_HASH = "0" * 64
_HASH = b',"hash":"'
_TAIL = len(_HASH) + 64 + len(b'"}')


@dataclass(frozen=True, slots=True)
class _Waiting:
    record: AuditRecord
    written: asyncio.Future[None]


@dataclass
class AuditFiles:
    """Folder of the audit trail.

    Args:
        folder: Created when missing, readable for the service's account alone.
        file_bytes: Size in bytes after which a new file begins.
        keep_s: Retention of the records, in seconds.

    Attributes:
        damage: Sentences about damaged data that was set aside, until the caller takes them.
    """

    folder: Path
    file_bytes: int = FILE_BYTES
    keep_s: float = KEEP_S
    last: int = 0
    head: str = NO_HASH
    damage: list[str] = field(default_factory=list)
    _file: Path | None = None
    _size: int = 0
    _queue: queue.SimpleQueue[_Waiting | None] = field(default_factory=queue.SimpleQueue)
    _thread: threading.Thread | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        """Find the end of the trail and start the writer thread. Errors: OSError."""
        await asyncio.to_thread(self._prepare)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="benchpool-audit", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Write the pending records and stop the writer thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(thread.join)

    async def append(self, record: AuditRecord) -> None:
        """Append a record and number and hash it; it is on disk when this returns.

        Errors: OSError, e.g. of a full disk; then no part of the record is written.
        """
        if self._loop is None or self._thread is None:
            raise OSError("the audit trail is not open")
        written = self._loop.create_future()
        self._queue.put(_Waiting(record, written))
        await asyncio.shield(written)

    # ------------------------------------------------------------------ reading

    def read(self, query: AuditQuery) -> AuditPage:
        """Return the newest records that match a query."""
        found: list[AuditRecord] = []
        for file in reversed(self._files()):
            for line in reversed(file.read_bytes().splitlines()):
                record = _decoded(line)
                if record is None:
                    continue
                if query.since is not None and record.at < query.since:
                    return AuditPage(found, more=False)
                if _asked(record, query):
                    if len(found) == query.limit:
                        return AuditPage(found, more=True)
                    found.append(record)
        return AuditPage(found, more=False)

    def verify(self, number: int | None = None, hash_: str | None = None) -> AuditCheck:
        """Check the whole chain, and that a record noted earlier is still in its place."""
        first = last = 0
        head: str | None = None
        noted = False
        known_last, known_head = self.last, self.head

        def broken(problem: str) -> AuditCheck:
            return AuditCheck(False, first, last, head or NO_HASH, problem)

        for place, line in self._lines():
            record = _decoded(line)
            if record is None or _hash(line[:-_TAIL] + b"}") != record.hash:
                return broken(f"{place} was changed: its hash does not match its text.")
            if head is None:
                first = record.number
            elif record.number != last + 1 or record.previous != head:
                return broken(
                    f"{place} has number {record.number} and does not follow number {last}: "
                    "records before it were removed, inserted or changed."
                )
            last, head = record.number, record.hash
            if record.number == number:
                noted = True
                if hash_ is not None and record.hash != hash_:
                    return broken(f"{place} is not the record {number} that was noted earlier.")
        if last < known_last or (last == known_last and (head or NO_HASH) != known_head):
            return broken(
                f"The trail ends with number {last}, although number {known_last} was written."
            )
        if number is not None and not noted:
            return broken(
                f"Record {number} does not exist: the trail has {first} to {last}."
                if last < number
                else f"Record {number} is no longer kept: the trail begins with {first}."
            )
        return AuditCheck(True, first, last, head or NO_HASH, None)

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.jsonl"))

    def _lines(self) -> Iterator[tuple[str, bytes]]:
        for file in self._files():
            for number, line in enumerate(file.read_bytes().splitlines(), start=1):
                yield f"Line {number} of {file.name}", line

    # ------------------------------------------------------------------ writing

    def _prepare(self) -> None:
        """Find the last intact record, and set aside any damaged data after it."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for file in reversed(self._files()):
            data = file.read_bytes()
            if data and not data.endswith(b"\n"):  # a crash cut off the last line
                data = data[: data.rfind(b"\n") + 1]
                os.truncate(file, len(data))
            record, end = _last_record(data)
            if end < len(data):
                self._set_aside(file, data[end:])
                os.truncate(file, end)
            if record is not None:
                self.last, self.head = record.number, record.hash
                self._file, self._size = file, end
                if end < len(data):
                    self._file, self._size = self._next_file(), 0
                return
            if data:
                file.unlink()

    def _set_aside(self, file: Path, data: bytes) -> None:
        """Save damaged data in a file beside the trail. Errors: OSError."""
        kept = file.with_name(f"{file.stem}.damaged-{hashlib.sha256(data).hexdigest()[:8]}")
        whole_files.write(kept, data)
        self.damage.append(
            f"{data_size(len(data))} at the end of {file.name} were not records and were moved to "
            f"{kept.name}; the trail continues in a new file"
        )

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            group = [first]
            while len(group) < GROUP and not self._queue.empty():
                following = self._queue.get()
                if following is None:
                    self._queue.put(None)
                    break
                group.append(following)
            self._answer(group, self._write(group))

    def _write(self, group: list[_Waiting]) -> OSError | None:
        try:
            if self._has_moved():  # on a cluster, another leader has written meanwhile
                self._prepare()
        except OSError as failed:
            return failed
        number, head, lines = self.last, self.head, []
        for waiting in group:
            number += 1
            line, head = _chained(waiting.record, number, head)
            lines.append(line)
        data = b"".join(lines)
        try:
            self._put(data, group[-1].record.at.timestamp())
        except OSError as failed:
            return failed
        self.last, self.head = number, head
        return None

    def _has_moved(self) -> bool:
        """Return whether another process has extended the trail since the last write."""
        newest = max(self.folder.glob("*.jsonl"), default=None)
        if newest is None or newest.stat().st_size == 0:
            return False  # ``verify`` reports deleted records
        if self._file is None or newest.name > self._file.name:
            return True
        return newest == self._file and newest.stat().st_size > self._size

    def _put(self, data: bytes, now_s: float) -> None:
        """Write all of the data and flush it to disk, or nothing."""
        file = self._file
        if file is None or not file.exists() or file.stat().st_size >= self.file_bytes:
            file = self._next_file()
            self._expire(now_s)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            before = os.fstat(descriptor).st_size
            append_whole(descriptor, data, before)
        finally:
            os.close(descriptor)
        self._file, self._size = file, before + len(data)

    def _next_file(self) -> Path:
        return self.folder / f"{self.last + 1:012d}.jsonl"

    def _expire(self, now_s: float) -> None:
        """Delete the files whose newest record is too old."""
        for file in self._files()[:-1]:
            lines = file.read_bytes().splitlines()
            newest = _decoded(lines[-1]) if lines else None
            if newest is None or now_s - newest.at.timestamp() < self.keep_s:
                return
            file.unlink()

    def _answer(self, group: list[_Waiting], failed: OSError | None) -> None:
        def settle() -> None:
            for waiting in group:
                if not waiting.written.done():
                    if failed is None:
                        waiting.written.set_result(None)
                    else:
                        waiting.written.set_exception(failed)

        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(settle)


_text: Callable[[object], bytes] = msgspec.json.Encoder().encode


def _chained(record: AuditRecord, number: int, previous: str) -> tuple[bytes, str]:
    """Return a record as a chained line, and its hash."""
    numbered = msgspec.structs.replace(record, number=number, previous=previous, hash="")
    covered = _text(numbered)[: -len(',"hash":""}')] + b"}"
    found = _hash(covered)
    return covered[:-1] + _HASH + found.encode() + b'"}\n', found


def _hash(covered: bytes) -> str:
    return hashlib.sha256(covered).hexdigest()


def _decoded(line: bytes) -> AuditRecord | None:
    try:
        return msgspec.json.decode(line, type=AuditRecord)
    except msgspec.DecodeError:
        return None


def _last_record(data: bytes) -> tuple[AuditRecord | None, int]:
    """Return the last intact record and its end offset; None and 0 when there is none."""
    end = len(data)
    while end:
        begin = data.rfind(b"\n", 0, end - 1) + 1
        if (record := _decoded(data[begin:end])) is not None:
            return record, end
        end = begin
    return None, 0


def _asked(record: AuditRecord, query: AuditQuery) -> bool:
    return (
        (query.below is None or record.number < query.below)
        and (query.until is None or record.at < query.until)
        and (not query.events or _is_event(record))
        and (query.search is None or _has(record, query.search.casefold()))
        and (query.actor is None or record.actor == query.actor)
        and (query.action is None or record.action == query.action)
        and (query.target is None or record.target.startswith(query.target))
        and (query.outcome is None or record.outcome is query.outcome)
    )


NO_EVENTS = frozenset({"login", "logout", "audit-begun", "refusals"})


def _is_event(record: AuditRecord) -> bool:
    """Return whether a user or the pool itself changed something."""
    return record.outcome is AuditOutcome.DONE and record.action not in NO_EVENTS


def _has(record: AuditRecord, text: str) -> bool:
    values = (*record.before.values(), *record.after.values())
    parts = (record.actor, record.action, record.target, record.reason, *map(str, values))
    return any(text in part.casefold() for part in parts)
