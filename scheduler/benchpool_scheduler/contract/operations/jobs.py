"""Operations on jobs: submit, read, and delete files."""

from __future__ import annotations

import uuid
from typing import Any

from msgspec.structs import replace

from benchpool_scheduler.contract.forms import Form, PlainVerb
from benchpool_scheduler.contract.job_metrics import JobMetrics, MetricsQuery
from benchpool_scheduler.contract.job_usage import JobUsage
from benchpool_scheduler.contract.jobs import (
    Job,
    JobDetail,
    JobDiscard,
    JobsQuery,
    Preview,
    Why,
)
from benchpool_scheduler.contract.operation import MIB, Given, Repeat, given, operation
from benchpool_scheduler.contract.stacks import Peek, PeekQuery
from benchpool_scheduler.contract.submission import JobSubmission, SentCode

_SUBMISSION: dict[str, Any] = {"body": JobSubmission, "max_body": 16 * MIB, "lab": True}


class JobOperations:
    """Submission and reading of jobs."""

    @operation(
        "POST",
        "jobs",
        Job,
        **_SUBMISSION,
        repeat=Repeat.BY_KEY,
        statuses={201: "Accepted and on disk.", 200: "Repeated key: the first job."},
    )
    def submit(self, submission: JobSubmission) -> Given:
        """Submit a job.

        It is on disk when the call returns. Without a ``key`` a new one is generated, so that a
        retry never creates a second job.
        """
        if submission.key is None:
            submission = replace(submission, key=uuid.uuid4().hex)
        return given(submission)

    @operation("POST", "preview", Preview, changes=False, **_SUBMISSION)
    def preview(self, submission: JobSubmission) -> Given:
        """Predict what would happen to a submission now."""
        return given(submission)

    @operation(
        "GET",
        "jobs",
        list[Job],
        query=JobsQuery,
        lab=True,
        verb=PlainVerb(("jobs",), "List your jobs, newest first.", hidden=("limit", "offset")),
        tool=True,
    )
    def jobs(
        self,
        *,
        all_: bool = False,
        project: str | None = None,
        state: str | None = None,
        limit: int | None = None,
        tag: str | None = None,
        search: str | None = None,
        offset: int | None = None,
        user: str | None = None,
        live: bool = False,
        reason: str | None = None,
    ) -> Given:
        """List jobs, newest first.

        Your own by default. ``all_`` lists all jobs that you may see, ``user`` those of one user.
        """
        query = {"all": all_ or None, "project": project, "state": state, "limit": limit}
        words = {"tag": tag, "search": search, "user": user, "live": live or None}
        return given(query={**query, **words, "offset": offset, "reason": reason})

    @operation(
        "GET",
        "jobs/{job}",
        JobDetail,
        lab=True,
        verb=PlainVerb(("show",), "Show a job and its attempts."),
        tool=True,
    )
    def job(self, id_: str) -> Given:
        """Read a job and its attempts."""
        return given(job=id_)

    @operation(
        "GET",
        "jobs/{job}/why",
        Why,
        lab=True,
        verb=PlainVerb(("why",), "Show why a job waits, and what would make it start."),
        tool=True,
    )
    def why(self, id_: str) -> Given:
        """Explain why a job waits.

        The reason is true at the time of the call (R22).
        """
        return given(job=id_)

    @operation(
        "GET",
        "jobs/{job}/stacks",
        Peek,
        query=PeekQuery,
        lab=True,
        verb=PlainVerb(
            ("peek",), "Show what a running job does: stacks of all workers, GPUs, last log lines."
        ),
        tool=True,
    )
    def peek(self, id_: str, *, hanging: bool = False) -> Given:
        """Show what a running job is doing.

        The stacks of its Python processes, with equal workers grouped; the latest measurements of
        its GPUs; and the last lines of worker 0. It may take seconds. ``hanging`` returns the
        snapshot that was stored when the job last hung. It is available after the job's end, too.
        """
        return given(query={"hanging": hanging or None}, job=id_)

    @operation(
        "GET",
        "jobs/{job}/usage",
        JobUsage,
        lab=True,
        verb=PlainVerb(
            ("usage",), "Show how an ended job used its GPUs, and what to change next time."
        ),
        tool=True,
    )
    def usage(self, id_: str) -> Given:
        """Read how an ended job used its GPUs.

        Three numbers, their meaning, and one recommended change. Available within seconds of the
        end.
        """
        return given(job=id_)

    @operation("GET", "jobs/{job}/metrics", JobMetrics, query=MetricsQuery, lab=True, tool=True)
    def job_metrics(self, id_: str, *, name: str | None = None, points: int | None = None) -> Given:
        """Read the metrics that a job has reported.

        One curve for each name, over all attempts. ``points`` limits the points of each curve.
        """
        return given(query={"name": name, "points": points}, job=id_)

    @operation(
        "POST",
        "jobs/{job}/discard",
        Job,
        body=JobDiscard,
        lab=True,
        form=Form("Delete files", "The chosen files of {name} are deleted.", ended=True),
        verb=PlainVerb(
            ("discard",),
            "Delete files of ended jobs permanently.",
            "The record of the job stays. Copies that you have fetched stay, too.",
            many=True,
        ),
    )
    def discard(
        self,
        id_: str,
        *,
        results: bool = False,
        checkpoints: bool = False,
        logs: bool = False,
    ) -> Given:
        """Delete files of an ended job permanently.

        At least one kind must be named.
        """
        return given(JobDiscard(results, checkpoints, logs), job=id_)

    @operation("GET", "jobs/{job}/submission", JobSubmission, lab=True)
    def submission(self, id_: str) -> Given:
        """Read the submission of a job."""
        return given(job=id_)

    @operation(
        "GET",
        "jobs/{job}/code",
        SentCode,
        lab=True,
        verb=PlainVerb(
            ("source",),
            "Show the cells or the script that a job was sent with.",
            replaces=("code",),
        ),
        tool=True,
    )
    def code(self, id_: str) -> Given:
        """Read the submitted cells or script of a job."""
        return given(job=id_)
