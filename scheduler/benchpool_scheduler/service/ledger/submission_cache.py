"""Cache of recent submissions for the start of their jobs: most start soon or wait long."""

from __future__ import annotations

from collections import OrderedDict

from benchpool_scheduler.contract import JobSubmission

MOST = 2_000
MOST_BYTES = 64 * 1024**2
MOST_FILES = 100
"""Maximum number of files of a cached submission."""


class SubmissionCache:
    """The newest submissions of live jobs, at most ``MOST`` and ``MOST_BYTES`` in total."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._known: OrderedDict[str, tuple[JobSubmission, int]] = OrderedDict()

    def put(self, job: str, submission: JobSubmission, size: int) -> None:
        """Add a submission of this size in bytes."""
        if len(submission.files) > MOST_FILES:
            return
        self.drop(job)
        self._known[job] = submission, size
        self._bytes += size
        while len(self._known) > self._most or self._bytes > self._most_bytes:
            _, (_, freed) = self._known.popitem(last=False)
            self._bytes -= freed

    def get(self, job: str) -> JobSubmission | None:
        """Return a submission, or None if it is not in the cache."""
        known = self._known.get(job)
        return None if known is None else known[0]

    def drop(self, job: str) -> None:
        """Remove a submission. An unknown job is no error."""
        known = self._known.pop(job, None)
        if known is not None:
            self._bytes -= known[1]
