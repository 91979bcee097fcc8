"""The operations on jobs: send, look, act."""

from __future__ import annotations

import uuid
from typing import Any

from msgspec.structs import replace

from benchpool_scheduler.contract.forms import Form, PlainVerb
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

_CHANGE = """\
Everything else stays as it was accepted. A job that waits may get any number of workers that could
run. One that runs keeps its workers unless it was sent with --min-workers: more then come when
there is room, and the last ones go at once, saving as for a pause."""


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
    ) -> Given:
        """List jobs, newest first.

        One's own, or with ``all_`` every one that one may see.
        """
        query = {"all": all_ or None, "project": project, "state": state, "limit": limit}
        return given(query=query)

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


class JobActions:
    """What may be done to an accepted job.

    Each is a wish for how the job is to be, so saying it twice is saying it once.
    """

    @operation(
        "POST",
        "jobs/{job}/pause",
        Job,
        body=ActionReason,
        lab=True,
        form=Form("Pause"),
        verb=PlainVerb(
            ("pause",), "Pause jobs: they keep their progress and wait until resumed.", many=True
        ),
    )
    def pause(self, id_: str, reason: str | None = None) -> Given:
        """Pause a job until it is resumed.

        It keeps its progress. The reason is shown to its owner.
        """
        return given(ActionReason(reason), job=id_)

    @operation(
        "POST",
        "jobs/{job}/resume",
        Job,
        body=ActionReason,
        lab=True,
        form=Form("Resume"),
        verb=PlainVerb(("resume",), "Queue paused jobs again.", many=True),
    )
    def resume(self, id_: str, reason: str | None = None) -> Given:
        """Queue a paused job again."""
        return given(ActionReason(reason), job=id_)

    @operation(
        "POST",
        "jobs/{job}/cancel",
        Job,
        body=ActionReason,
        lab=True,
        form=Form("Cancel"),
        verb=PlainVerb(("cancel",), "End jobs for good.", many=True),
    )
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
        verb=PlainVerb(
            ("change",),
            "Give jobs another priority or other workers.",
            _CHANGE,
            many=True,
        ),
    )
    def change(self, id_: str, *, priority: int | None = None, workers: int | None = None) -> Given:
        """Give an accepted job another priority, other workers, or both.

        None leaves it as it is.
        """
        return given(JobChange(priority, workers), job=id_)
