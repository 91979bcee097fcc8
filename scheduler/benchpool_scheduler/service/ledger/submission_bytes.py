"""Total size of each user's submissions, over jobs that have not ended."""

from __future__ import annotations

from collections import Counter


class SubmissionBytes:
    """Sizes by job and their sums by user.

    >>> sizes = SubmissionBytes()
    >>> sizes.put("7k2m", "susan", 100)
    >>> sizes.of("susan")
    100
    >>> sizes.drop("7k2m", "susan")
    >>> sizes.of("susan")
    0
    """

    def __init__(self) -> None:
        self._of_job: dict[str, int] = {}
        self._of_user: Counter[str] = Counter()

    def of(self, user: str) -> int:
        """Return the total size of a user's submissions, in bytes."""
        return self._of_user.get(user, 0)

    def put(self, job: str, user: str, size: int) -> None:
        """Set the size of a job's submission, in bytes."""
        self.drop(job, user)
        self._of_job[job] = size
        self._of_user[user] += size

    def drop(self, job: str, user: str) -> None:
        """Forget a job. An unknown job is no error."""
        self._of_user[user] -= self._of_job.pop(job, 0)
        if not self._of_user[user]:
            del self._of_user[user]
