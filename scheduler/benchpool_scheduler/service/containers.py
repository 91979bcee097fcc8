"""From a job's submission to what a worker in a container is started with.

Nothing of the scheduler's own environment, folders or accounts is in a container: the image has
its own. A job that names a folder runs there when its user's home can be mounted, else in a copy of
the files that came with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchpool_scheduler.contract import (
    CommandEntry,
    JobSubmission,
    ModuleEntry,
    NotebookEntry,
    ScriptEntry,
)
from benchpool_scheduler.runtime import Launch, SnapshotEntry, WorkerId
from benchpool_scheduler.service.site import Containers, Site
from benchpool_scheduler.store.records import AttemptRecord, JobRecord


def launch(
    site: Site,
    containers: Containers,
    job: JobRecord,
    attempt: AttemptRecord,
    index: int,
    submission: JobSubmission,
) -> Launch:
    """Return what the runtime needs to start a worker in a container."""
    worker = next(w for w in attempt.workers if w.index == index)
    nodes = tuple(w.node for w in attempt.workers)
    claim = _home(containers, job, submission, nodes)
    folder = submission.working_dir if claim is not None else None
    home = {} if claim is None else {"HOME": containers.home_path}
    return Launch(
        worker=WorkerId(job.id, attempt.attempt, index),
        argv=_argv(containers, submission, folder),
        env={
            **site.environment,
            "PYTHONUNBUFFERED": "1",
            **home,
            **submission.env,
            **identity(job, attempt),
        },
        gpus=worker.gpus,
        working_dir=None if folder is None else Path(folder),
        files=tuple(
            SnapshotEntry(file.path, file.sha256, file.executable) for file in submission.files
        ),
        output_dir=None if submission.output_dir is None else Path(submission.output_dir),
        grace_s=site.configuration.policy.grace_s,
        time_limit_s=job.time_limit_s,
        nodes=nodes,
        port=attempt.port,
        image=submission.image,
        cpus=job.cpus,
        memory_gib=job.memory_gib,
        objects=tuple(_objects(submission)),
        claim=claim,
        claim_path=containers.home_path if claim is not None else "",
    )


def identity(job: JobRecord, attempt: AttemptRecord) -> dict[str, str]:
    """Return the variables that tell a worker who it is (formats, section 7)."""
    return {
        "BENCHPOOL_JOB_ID": job.id,
        "BENCHPOOL_JOB_NAME": job.name,
        "BENCHPOOL_PROJECT": job.project,
        "BENCHPOOL_USER": job.user,
        "BENCHPOOL_ATTEMPT": str(attempt.attempt),
    }


def _home(
    containers: Containers, job: JobRecord, submission: JobSubmission, nodes: Iterable[str]
) -> str | None:
    """Return the claim of the user's home, where the job wants it and all its nodes can have it."""
    if submission.working_dir is None and submission.output_dir is None:
        return None
    claim = containers.home_of(job.user)
    if claim is None:
        return None
    allowed = containers.nodes_for_claim(claim)
    return claim if allowed is None or allowed.issuperset(nodes) else None


def _objects(submission: JobSubmission) -> Iterable[str]:
    if isinstance(submission.entry, NotebookEntry):
        yield submission.entry.notebook


def _argv(containers: Containers, submission: JobSubmission, folder: str | None) -> tuple[str, ...]:
    python = submission.interpreter or containers.python
    match submission.entry:
        case ScriptEntry(path=path, args=args):
            return (python, path, *args)
        case ModuleEntry(module=module, args=args):
            return (python, "-m", module, *args)
        case CommandEntry(argv=argv):
            return tuple(argv)
        case NotebookEntry(notebook=sha256, name=name):
            return (
                *(python, "-P", "-m", "benchpool.runner", "notebook"),
                *("--notebook", f"{containers.objects}/{sha256[:2]}/{sha256}", "--name", name),
                *("--interpreter", python, "--cwd", folder or ".", "--output", containers.output),
            )
