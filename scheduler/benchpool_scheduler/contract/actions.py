"""Actions on an accepted job, each with its body.

New actions belong in this part of the table of operations. ``service.jobs.commands`` executes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract.changes import JobChange
from benchpool_scheduler.contract.forms import Form, PlainVerb
from benchpool_scheduler.contract.jobs import Job
from benchpool_scheduler.contract.operation import Given, given, operation
from benchpool_scheduler.contract.scalars import Name

_CHANGE = """\
All other values stay as accepted. A waiting job can get any size that could run, another time
limit, another project of yours, and other GPU models. Its submission time still determines its
position in the queue. A running job keeps all of these. It can change its number of workers only
if it was sent with --min-workers: workers are added when there is room, and the last ones are
removed at once, saving as for a pause."""


class ActionReason(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``pause``, ``resume`` and ``cancel``: a reason that is shown to the job's owner."""

    reason: (
        Annotated[
            str, Meta(max_length=500, description="A short reason, which the job's owner sees.")
        ]
        | None
    ) = None


class JobRename(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``rename``: the new name of a job. Ended jobs can be renamed, too."""

    name: Annotated[Name, Meta(description="New name in lists, pages and messages.")]


class JobNote(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``note``: the note of the job's users. An empty text removes it."""

    note: Annotated[
        str, Meta(max_length=500, description="Shown with the job and where jobs are compared.")
    ] = ""


class JobActions:
    """Actions on an accepted job.

    Each action names the desired state of the job, so repeating it has no further effect.
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
        tool=True,
    )
    def pause(self, id_: str, reason: str | None = None) -> Given:
        """Pause a job until it is resumed.

        The job keeps its progress. The reason is shown to its owner.
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
        tool=True,
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
        verb=PlainVerb(("cancel",), "End jobs permanently.", many=True),
        tool=True,
    )
    def cancel(self, id_: str, reason: str | None = None) -> Given:
        """End a job permanently."""
        return given(ActionReason(reason), job=id_)

    @operation(
        "POST",
        "jobs/{job}/change",
        Job,
        body=JobChange,
        lab=True,
        form=Form("Change", "{name} has {changeable}."),
        verb=PlainVerb(
            ("change",),
            "Change the priority, size, time limit, project or GPU models of jobs.",
            _CHANGE,
            many=True,
        ),
        tool=True,
    )
    def change(
        self,
        id_: str,
        *,
        priority: int | None = None,
        workers: int | None = None,
        gpus: int | None = None,
        time_limit_s: int | None = None,
        project: str | None = None,
        gpu_models: Sequence[str] | None = None,
    ) -> Given:
        """Change the priority, size, time limit, project or GPU models of an accepted job.

        None leaves a field unchanged.
        """
        models = None if gpu_models is None else tuple(gpu_models)
        body = JobChange(priority, workers, gpus, time_limit_s, project, models)
        return given(body, job=id_)

    @operation(
        "POST",
        "jobs/{job}/rename",
        Job,
        body=JobRename,
        lab=True,
        form=Form("Rename", "The new name is {name}.", ended=True),
        verb=PlainVerb(
            ("rename",),
            "Rename a job, at any time.",
            "Nothing else changes. Its results stay where they are.",
            positional=("name",),
        ),
        tool=True,
    )
    def rename(self, id_: str, name: str) -> Given:
        """Rename a job."""
        return given(JobRename(name), job=id_)

    @operation(
        "POST",
        "jobs/{job}/note",
        Job,
        body=JobNote,
        lab=True,
        form=Form("Note", "The note on {name} is changed.", ended=True),
        verb=PlainVerb(
            ("note",),
            "Write a note on a job, at any time; without a text the note is removed.",
            "The note is shown with the job and where jobs are compared.",
            positional=("note",),
        ),
        tool=True,
    )
    def note(self, id_: str, note: str = "") -> Given:
        """Write a note on a job."""
        return given(JobNote(note), job=id_)
