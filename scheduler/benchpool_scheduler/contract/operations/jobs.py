"""The operations on jobs: send, look, act."""

from __future__ import annotations

import uuid
from typing import Any

from msgspec.structs import replace

from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.jobs import (
    Job,
    JobDetail,
    JobsQuery,
    Preview,
    Why,
)
from benchpool_scheduler.contract.operation import MIB, Given, Repeat, given, operation
from benchpool_scheduler.contract.submission import JobSubmission

_SUBMISSION: dict[str, Any] = {"body": JobSubmission, "max_body": 16 * MIB, "lab": True}


class JobOperations:
    """Jobs, sent and looked at."""

    @operation(
        "POST",
        "jobs",
        Job,
        **_SUBMISSION,
        repeat=Repeat.BY_KEY,
        statuses={201: "Accepted and on disk.", 200: "A repeat by key: the first job."},
    )
    def submit(self, submission: JobSubmission) -> Given:
        """Submit a job.

        It is on disk when this returns. Without a ``key`` one is made up, so that trying again
        never makes two jobs of one.
        """
        if submission.key is None:
            submission = replace(submission, key=uuid.uuid4().hex)
        return given(submission)

    @operation("POST", "preview", Preview, changes=False, **_SUBMISSION)
    def preview(self, submission: JobSubmission) -> Given:
        """Say what would happen to a submission now."""
        return given(submission)

    @operation(
        "GET",
        "jobs",
        list[Job],
        query=JobsQuery,
        lab=True,
        verb=PlainVerb(("jobs",), "List your jobs, newest first.", hidden=("limit",)),
    )
    def jobs(
        self,
        *,
        all_: bool = False,
        project: str | None = None,
        state: str | None = None,
        limit: int | None = None,
        tag: str | None = None,
    ) -> Given:
        """List jobs, newest first.

        One's own, or with ``all_`` every one that one may see.
        """
        query = {"all": all_ or None, "project": project, "state": state, "limit": limit}
        return given(query={**query, "tag": tag})

    @operation(
        "GET",
        "jobs/{job}",
        JobDetail,
        lab=True,
        verb=PlainVerb(("show",), "Show a job and its attempts."),
    )
    def job(self, id_: str) -> Given:
        """Read a job and its attempts."""
        return given(job=id_)

    @operation(
        "GET",
        "jobs/{job}/why",
        Why,
        lab=True,
        verb=PlainVerb(("why",), "Say why a job waits, and what would make it start."),
    )
    def why(self, id_: str) -> Given:
        """Ask why a job waits.

        R22: the reason is true now.
        """
        return given(job=id_)

    @operation("GET", "jobs/{job}/submission", JobSubmission, lab=True)
    def submission(self, id_: str) -> Given:
        """Read back what was submitted."""
        return given(job=id_)
