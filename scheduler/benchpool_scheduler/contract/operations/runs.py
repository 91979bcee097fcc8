"""Operations on runs: repeat a run, and compare it with another one."""

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
    """Repetition and comparison of runs."""

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
