"""The submissions that came last, for their start: most jobs start soon or wait for long."""

from __future__ import annotations

from collections import OrderedDict

from benchpool_scheduler.contract import JobSubmission

MOST = 2_000
MOST_FILES = 100
"""A submission with more files is read from the store again."""


class SubmissionCache:
    """Submissions by job, the newest ``MOST`` of them."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: OrderedDict[str, JobSubmission] = OrderedDict()

    def put(self, job: str, submission: JobSubmission) -> None:
        """Know a submission."""
        if len(submission.files) <= MOST_FILES:
            self._known[job] = submission
            if len(self._known) > self._most:
                self._known.popitem(last=False)

    def get(self, job: str) -> JobSubmission | None:
        """Return a submission, None when it is not known any more."""
        return self._known.get(job)
