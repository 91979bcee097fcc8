"""Launch parameters of a worker in a container, from the job's submission.

The scheduler's own environment, folders and accounts are not in a container: the image has its own.
A job that names a folder runs there if its user's home can be mounted. Otherwise it runs in a copy
of the submitted files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from benchpool_scheduler.contract import (
    CommandEntry,
    Container,
    JobSubmission,
    ModuleEntry,
    NotebookEntry,
    PodsEntry,
    ScriptEntry,
)
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.phrases import count
from benchpool_scheduler.runtime import Launch, SnapshotEntry, WorkerId
from benchpool_scheduler.service.execution import tracking
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.observed.service_settings import Containers, ServiceSettings
from benchpool_scheduler.store.records import AttemptRecord, JobRecord


def launch(
    observed: SchedulerState,
    containers: Containers,
    job: JobRecord,
    attempt: AttemptRecord,
    index: int,
    submission: JobSubmission,
) -> Launch:
    """Return the launch parameters of a worker in a container."""
    worker = next(w for w in attempt.workers if w.index == index)
    nodes = tuple(w.node for w in attempt.workers)
    claim, _ = _home(containers, job.user, submission, nodes)
    amounts = observed.settings.default_amounts.held(job.spec, attempt)
    folder = submission.working_dir if claim is not None else None
    home = {} if claim is None else {"HOME": containers.home_path}
    results = containers.output if claim is None else submission.output_dir or containers.output
    return Launch(
        worker=WorkerId(job.id, attempt.attempt, index),
        argv=_argv(containers, submission, folder),
        env=tracking.with_names(
            {
                **observed.settings.environment,
                "PYTHONUNBUFFERED": "1",
                **home,
                **submission.env,
                **identity(job, attempt),
                **({} if submission.image is None else {"BENCHPOOL_JOB_IMAGE": submission.image}),
            },
            job,
            index,
            base_url=observed.settings.base_url,
            results=Path(results),
        ),
        gpus=worker.gpus,
        working_dir=None if folder is None else Path(folder),
        files=tuple(
            SnapshotEntry(file.path, file.sha256, file.executable) for file in submission.files
        ),
        output_dir=None if submission.output_dir is None else Path(submission.output_dir),
        grace_s=observed.now.configuration.policy.grace_s,
        time_limit_s=job.spec.time_limit_s,
        nodes=nodes,
        port=attempt.port,
        image=submission.image,
        cpus=amounts.cpus,
        memory_gib=amounts.memory_gib,
        objects=tuple(_objects(submission)),
        claim=claim,
        claim_path=containers.home_path if claim is not None else "",
        admitted=isinstance(submission.entry, PodsEntry),
    )


def pinned(settings: ServiceSettings, user: str, submission: JobSubmission) -> JobSubmission:
    """Return a submission with its image by digest, if a notebook of its user runs that image.

    All attempts of a job then run in the image that the notebook had at the submission.
    """
    if settings.containers is None or submission.image is None:
        return submission
    return replace(submission, image=settings.containers.pinned(user, submission.image).image)


def describe(
    settings: ServiceSettings,
    user: str,
    submission: JobSubmission,
    spec: JobSpec,
    attempt: AttemptRecord | None = None,
) -> Container | None:
    """Return the container environment of a job's workers, or None without containers.

    Args:
        spec: The present request. ``attempt``: the attempt that holds GPUs, or held them last.
    """
    where = settings.containers
    if where is None:
        return None
    if isinstance(submission.entry, PodsEntry):
        text = describe_pods(submission.entry)
        return Container(None, False, text, spec.cpus, spec.memory_gib)
    nodes = tuple(worker.node for worker in attempt.workers) if attempt is not None else ()
    claim, why = _home(where, user, submission, nodes)
    image, text = _image(where, user, submission.image)
    home = (
        f"the home of {user} is mounted at {where.home_path}"
        if claim is not None
        else f"{why}it works on a copy of the files that were sent with it"
    )
    running = attempt is not None and bool(attempt.live_workers)
    given = settings.default_amounts.held(spec, attempt if running else None)
    return Container(
        image=image,
        home=claim is not None,
        text=f"It runs in {text}{_amounts(spec, given)}; {home}.",
        cpus=given.cpus,
        memory_gib=given.memory_gib,
    )


def describe_pods(entry: PodsEntry) -> str:
    """Return a sentence about foreign pods and the location of their logs.

    >>> describe_pods(PodsEntry("a", "Pod", "train", ["train"]))
    'It is a pod in namespace a, created outside benchpool; its log: kubectl -n a logs train'
    """
    many = len(entry.pods)
    what = "It is a pod" if many == 1 else f"It is {many} pods"
    owner = "" if entry.owner_kind == "Pod" else f" of {entry.owner_kind} {entry.owner}"
    log = "its log" if many == 1 else "the first one's log"
    return (
        f"{what}{owner} in namespace {entry.namespace}, created outside benchpool; {log}: "
        f"kubectl -n {entry.namespace} logs {entry.pods[0]}"
    )


def _amounts(asked: JobSpec, given: JobSpec) -> str:
    """Return the CPUs and memory of each worker, marking defaults that the job did not name.

    >>> _amounts(JobSpec(), JobSpec())
    ''
    >>> _amounts(JobSpec(cpus=2), JobSpec(cpus=2, memory_gib=16))
    ', each worker with 2 cores and with 16 GiB of memory by default'
    """
    each = (
        (asked.cpus, given.cpus, "core"),
        (asked.memory_gib, given.memory_gib, ""),
    )
    parts = [
        (count(amount, noun) if noun else f"{amount:g} GiB of memory")
        + ("" if named else " by default")
        for named, amount, noun in each
        if amount
    ]
    return f", each worker with {' and with '.join(parts)}" if parts else ""


def _image(where: Containers, user: str, image: str | None) -> tuple[str | None, str]:
    if image is None:
        return None, "the image of the pool"
    found = where.pinned(user, image)
    if found.why:
        return image, f"{image}, with the tag not resolved ({found.why})"
    return found.image, f"{found.image}"


def identity(job: JobRecord, attempt: AttemptRecord) -> dict[str, str]:
    """Return the variables that identify the job to its worker (formats, section 7)."""
    return {
        "BENCHPOOL_JOB_ID": job.id,
        "BENCHPOOL_JOB_NAME": job.name,
        "BENCHPOOL_PROJECT": job.project,
        "BENCHPOOL_USER": job.user,
        "BENCHPOOL_ATTEMPT": str(attempt.attempt),
    }


def _home(
    containers: Containers, user: str, submission: JobSubmission, nodes: Sequence[str]
) -> tuple[str | None, str]:
    """Return the claim of the user's home, if the job needs it and all its nodes can mount it.

    Without a claim, the text explains why. It is empty if the job names no folder.
    """
    if submission.working_dir is None and submission.output_dir is None:
        return None, ""
    claim = containers.home_of(user)
    if claim is None:
        why = (
            f"no volume of {user} can be mounted on several machines at a time (ReadWriteMany), so "
        )
        return None, why
    allowed = containers.nodes_for_claim(claim)
    if allowed is None or allowed.issuperset(nodes):
        return claim, ""
    out = ", ".join(sorted(set(nodes) - allowed))
    return None, f"the home of {user} cannot be mounted on {out}, so "


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
                *filled_in(submission),
            )
        case PodsEntry():
            return ()  # the owner's pod specification defines the command


def filled_in(submission: JobSubmission) -> tuple[str, ...]:
    """Return the runner's arguments that fill values into a notebook, or none.

    >>> from benchpool_scheduler.contract import ScriptEntry
    >>> book = NotebookEntry("0" * 64, "a.ipynb", fill=True)
    >>> filled_in(JobSubmission(entry=book, parameters={"x": 1}))
    ('--values', '{"x": 1}')
    >>> filled_in(JobSubmission(entry=ScriptEntry("a.py"), parameters={"x": 1}))
    ()
    """
    entry = submission.entry
    if not (isinstance(entry, NotebookEntry) and entry.fill):
        return ()
    return ("--values", json.dumps(submission.parameters))
