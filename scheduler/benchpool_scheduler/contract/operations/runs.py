"""Operations on runs: repeat a run, and compare it with another one."""

from __future__ import annotations

import uuid

from benchpool_scheduler.contract.forms import Form, PlainVerb
from benchpool_scheduler.contract.jobs import Job
from benchpool_scheduler.contract.operation import Given, Repeat, given, operation
from benchpool_scheduler.contract.run_changes import JobAgain, RunChanges, RunChangesQuery

_AGAIN = """\
The new job has the same code, submitted modules, options, variables and image. Its results go to a
new folder. Data and the packages of its Python are the present ones: `benchpool changes OLD NEW`
shows the differences once it has begun."""


class RunOperations:
    """Repetition and comparison of runs."""

    @operation(
        "POST",
        "jobs/{job}/again",
        Job,
        body=JobAgain,
        lab=True,
        repeat=Repeat.BY_KEY,
        statuses={201: "Accepted and on disk.", 200: "Repeated key: the first job."},
        form=Form("Run again as it was", "{name} was sent again as it was. This is the new job."),
        verb=PlainVerb(("again",), "Run a job again as it was.", _AGAIN),
        tool=True,
    )
    def again(self, id_: str, *, key: str | None = None) -> Given:
        """Run a job again as it was.

        Code, submitted modules, options and image are the same. The results go to a new folder.
        Without a ``key`` a new one is generated.
        """
        return given(JobAgain(key or uuid.uuid4().hex), job=id_)

    @operation("GET", "jobs/{job}/changes", RunChanges, query=RunChangesQuery, lab=True, tool=True)
    def job_changes(self, id_: str, *, than: str | None = None) -> Given:
        """Compare a run with another one.

        By default with the submission before it.
        """
        return given(query={"than": than}, job=id_)
