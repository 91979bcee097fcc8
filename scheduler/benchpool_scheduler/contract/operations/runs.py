"""The operations on runs: once more as it was, and what is otherwise in one than in another."""

from __future__ import annotations

import uuid

from benchpool_scheduler.contract.forms import Form, PlainVerb
from benchpool_scheduler.contract.jobs import Job
from benchpool_scheduler.contract.operation import Given, Repeat, given, operation
from benchpool_scheduler.contract.run_changes import JobAgain, RunChanges, RunChangesQuery

_AGAIN = """\
The new job has the same code, the modules of yours that went along, the same options, variables
and image; its results go to a folder of their own. Data, and the packages of the Python that it
names, are those that are there now: `benchpool changes OLD NEW` says what was otherwise once it
has begun."""


class RunOperations:
    """Runs beside one another."""

    @operation(
        "POST",
        "jobs/{job}/again",
        Job,
        body=JobAgain,
        lab=True,
        repeat=Repeat.BY_KEY,
        statuses={201: "Accepted and on disk.", 200: "A repeat by key: the first job."},
        form=Form("Run again as it was", "{name} runs again as it was: this is the new job."),
        verb=PlainVerb(("again",), "Run a job again as it was.", _AGAIN),
        tool=True,
    )
    def again(self, id_: str, *, key: str | None = None) -> Given:
        """Run a job again as it was.

        Code, modules that went along, options and image are the same; results have a folder of
        their own. Without a ``key`` one is made up.
        """
        return given(JobAgain(key or uuid.uuid4().hex), job=id_)

    @operation("GET", "jobs/{job}/changes", RunChanges, query=RunChangesQuery, lab=True, tool=True)
    def job_changes(self, id_: str, *, than: str | None = None) -> Given:
        """Read what is otherwise in a run than in another.

        By default than in the send before it.
        """
        return given(query={"than": than}, job=id_)
