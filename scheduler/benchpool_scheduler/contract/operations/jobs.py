"""The operations on jobs: send, look, act."""

from __future__ import annotations

import uuid
from typing import Any

from msgspec.structs import replace

from benchpool_scheduler.contract.forms import Form
from benchpool_scheduler.contract.jobs import (
    ActionReason,
    Job,
    JobChange,
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

    @operation("POST", "preview", Preview, **_SUBMISSION)
    def preview(self, submission: JobSubmission) -> Given:
        """Say what would happen to a submission now."""
        return given(submission)

    @operation("GET", "jobs", list[Job], query=JobsQuery, lab=True)
    def jobs(
        self,
        *,
        all_: bool = False,
        project: str | None = None,
        state: str | None = None,
        limit: int | None = None,
    ) -> Given:
        """List jobs, newest first.

        One's own, or with ``all_`` every one that one may see.
        """
        query = {"all": all_ or None, "project": project, "state": state, "limit": limit}
        return given(query=query)

    @operation("GET", "jobs/{job}", JobDetail, lab=True)
    def job(self, id_: str) -> Given:
        """Read a job and its attempts."""
        return given(job=id_)

    @operation("GET", "jobs/{job}/why", Why, lab=True)
    def why(self, id_: str) -> Given:
        """Ask why a job waits.

        R22: the reason is true now.
        """
        return given(job=id_)

    @operation("GET", "jobs/{job}/submission", JobSubmission, lab=True)
    def submission(self, id_: str) -> Given:
        """Read back what was submitted."""
        return given(job=id_)


class JobActions:
    """What may be done to an accepted job.

    Each is a wish for how the job is to be, so saying it twice is saying it once.
    """

    @operation("POST", "jobs/{job}/pause", Job, body=ActionReason, lab=True, form=Form("Pause"))
    def pause(self, id_: str, reason: str | None = None) -> Given:
        """Pause a job until it is resumed.

        It keeps its progress. The reason is shown to its owner.
        """
        return given(ActionReason(reason), job=id_)

    @operation("POST", "jobs/{job}/resume", Job, body=ActionReason, lab=True, form=Form("Resume"))
    def resume(self, id_: str, reason: str | None = None) -> Given:
        """Queue a paused job again."""
        return given(ActionReason(reason), job=id_)

    @operation("POST", "jobs/{job}/cancel", Job, body=ActionReason, lab=True, form=Form("Cancel"))
    def cancel(self, id_: str, reason: str | None = None) -> Given:
        """End a job for good."""
        return given(ActionReason(reason), job=id_)

    @operation(
        "POST",
        "jobs/{job}/change",
        Job,
        body=JobChange,
        lab=True,
        form=Form("Change", "{name} has priority {priority} and is to have {workers_text}."),
    )
    def change(self, id_: str, *, priority: int | None = None, workers: int | None = None) -> Given:
        """Give an accepted job another priority, other workers, or both.

        None leaves it as it is.
        """
        return given(JobChange(priority, workers), job=id_)
