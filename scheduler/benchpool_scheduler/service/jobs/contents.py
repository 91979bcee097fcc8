"""What a job was submitted with, for the agents of its workers: nothing else is theirs to read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from benchpool_scheduler.contract import JobSubmission, NotebookEntry
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.service.jobs.uploads import UploadedContents
from benchpool_scheduler.service.ledger.ledger import Ledger

PIECE = 1024 * 1024


class JobContents:
    """Reads the contents that a job names."""

    def __init__(self, ledger: Ledger, objects: UploadedContents) -> None:
        self._ledger = ledger
        self._objects = objects

    async def read(self, job: str, sha256: str) -> AsyncIterator[bytes]:
        """Yield one content in pieces. Errors: NotFound when the job does not name it."""
        if self._ledger.job(job) is None or sha256 not in named(self._ledger.submission(job)):
            raise NotFound("The job has no such content.")
        try:
            file = await asyncio.to_thread(self._objects.place.open, sha256)
        except FileNotFoundError:
            raise NotFound("The content is no longer there.") from None
        with file:
            while piece := await asyncio.to_thread(file.read, PIECE):
                yield piece


def named(submission: JobSubmission) -> frozenset[str]:
    """Return the hashes that a submission names."""
    hashes = {file.sha256 for file in submission.files}
    if isinstance(submission.entry, NotebookEntry):
        hashes.add(submission.entry.notebook)
    return frozenset(hashes)
