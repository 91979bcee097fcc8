"""Submitted contents of a job: files for its own workers, and its code for readers of the job."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import IO

import msgspec
from msgspec import Struct, field

from benchpool_scheduler.contract import (
    CommandEntry,
    JobSubmission,
    ModuleEntry,
    NotebookEntry,
    PodsEntry,
    ScriptEntry,
    SentCell,
    SentCode,
)
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.service.jobs.uploads import UploadedContents
from benchpool_scheduler.service.ledger.ledger import Ledger

PIECE = 1024 * 1024
TOGETHER = 50
"""Number of submissions read before control returns to the event loop."""


class JobContents:
    """Reader of the contents that a job names."""

    def __init__(self, ledger: Ledger, objects: UploadedContents) -> None:
        self._ledger = ledger
        self._objects = objects

    async def read(self, job: str, sha256: str) -> AsyncIterator[bytes]:
        """Yield a content in pieces. Errors: NotFound if the job does not name it."""
        if self._ledger.job(job) is None or sha256 not in named(self._ledger.submission(job)):
            raise NotFound("The job has no such content.")
        with await self._open(sha256) as file:
            while piece := await asyncio.to_thread(file.read, PIECE):
                yield piece

    async def of_unfinished(self) -> set[str]:
        """Return the content hashes that unfinished and future jobs need."""
        found = set(self._objects.needed())
        for number, job in enumerate(self._ledger.live()):
            with contextlib.suppress(msgspec.MsgspecError):  # an unreadable job cannot start
                found |= named(self._ledger.submission(job.id))
            if number % TOGETHER == TOGETHER - 1:
                await asyncio.sleep(0)
        return found

    async def code(self, job: str, submission: JobSubmission) -> SentCode:
        """Return the cells or script of a submission. Errors: NotFound when they are gone."""
        match submission.entry:
            case NotebookEntry(notebook=sha256):
                with await self._open(sha256) as file:
                    cells = _cells(await asyncio.to_thread(file.read))
                return SentCode(job, "notebook", submission.source, cells=cells)
            case ScriptEntry(path=path):
                sent = next((each for each in submission.files if each.path == path), None)
                if sent is None:
                    return SentCode(job, "script", submission.source)
                with await self._open(sent.sha256) as file:
                    text = await asyncio.to_thread(file.read, PIECE)
                return SentCode(
                    job, "script", submission.source,
                    text=text.decode("utf-8", "replace"), cut=sent.size > PIECE,
                )  # fmt: skip
            case ModuleEntry(module=module, args=args):
                command = ["python", "-m", module, *args]
            case CommandEntry(argv=argv):
                command = argv
            case PodsEntry(namespace=space, pods=pods):
                command = ["kubectl", "-n", space, "get", "pod", *pods]
        return SentCode(job, "command", submission.source, command=command)

    async def _open(self, sha256: str) -> IO[bytes]:
        try:
            return await asyncio.to_thread(self._objects.place.open, sha256)
        except FileNotFoundError:
            raise NotFound("The content is no longer there.") from None


def _cells(notebook: bytes) -> list[SentCell]:
    """Return the cells of the submitted notebook, whose contents are untrusted.

    Errors: NotFound if it is not valid.
    """
    try:
        found = msgspec.json.decode(notebook, type=_Notebook).cells
    except msgspec.DecodeError as bad:
        raise NotFound(f"The job's notebook cannot be read ({bad}).") from bad
    return [
        SentCell(
            each.id,
            each.metadata.benchpool.number or place,
            each.cell_type,
            each.source if isinstance(each.source, str) else "".join(each.source),
        )
        for place, each in enumerate(found, start=1)
    ]


class _Ours(Struct):
    number: int | None = None


class _Metadata(Struct):
    benchpool: _Ours = field(default_factory=_Ours)


class _Cell(Struct):
    cell_type: str = "code"
    id: str = ""
    source: str | list[str] = ""
    metadata: _Metadata = field(default_factory=_Metadata)


class _Notebook(Struct):
    cells: list[_Cell] = field(default_factory=list)


def named(submission: JobSubmission) -> frozenset[str]:
    """Return the content hashes that a submission names."""
    hashes = {file.sha256 for file in submission.files}
    if isinstance(submission.entry, NotebookEntry):
        hashes.add(submission.entry.notebook)
    return frozenset(hashes)
