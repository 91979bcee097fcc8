"""The submissions that came last, for their start: most jobs start soon or wait for long."""

from __future__ import annotations

from collections import OrderedDict

from benchpool_scheduler.contract import JobSubmission

MOST = 2_000
MOST_BYTES = 64 * 1024**2
MOST_FILES = 100
"""A submission with more files is read from the store again."""


class SubmissionCache:
    """Submissions by job, the newest ``MOST`` of them that have not ended, in ``MOST_BYTES``."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._known: OrderedDict[str, tuple[JobSubmission, int]] = OrderedDict()

    def put(self, job: str, submission: JobSubmission, size: int) -> None:
        """Know a submission that has so many bytes."""
        if len(submission.files) > MOST_FILES:
            return
        self.drop(job)
        self._known[job] = submission, size
        self._bytes += size
        while len(self._known) > self._most or self._bytes > self._most_bytes:
            _, (_, freed) = self._known.popitem(last=False)
            self._bytes -= freed

    def get(self, job: str) -> JobSubmission | None:
        """Return a submission, None when it is not known any more."""
        known = self._known.get(job)
        return None if known is None else known[0]

    def drop(self, job: str) -> None:
        """Forget a submission; one that is not known is no error."""
        known = self._known.pop(job, None)
        if known is not None:
            self._bytes -= known[1]
