"""``benchpool apply -f FILE``: applies workstation and cluster YAML files on either system.

A ``benchpool.yaml`` is put in force as by ``config apply``. ``Project``, ``NodePool`` and
``PoolSettings`` objects are another form of the same configuration, and are applied as a whole.
Objects that the file does not name are deleted, so a file without ``PoolSettings`` is refused. A
``TrainingJob`` becomes a job of the user who applies it. Applied again, it is the same job:
``suspend`` pauses and resumes it, and ``priority`` and ``workers`` change it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import yaml

from benchpool_scheduler.cli import config_views, text_files
from benchpool_scheduler.cli.screen import Screen
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Options
from benchpool_scheduler.cli.words import clean, short
from benchpool_scheduler.client import Client
from benchpool_scheduler.configuration import declared
from benchpool_scheduler.configuration.declared import Declared
from benchpool_scheduler.configuration.nodes import BoundedLoader
from benchpool_scheduler.contract import ENDED, ConfigurationChange, Job, JobSubmission, State
from benchpool_scheduler.contract.changes import ROWS, in_words
from benchpool_scheduler.contract.kubernetes import API_VERSION
from benchpool_scheduler.errors import Forbidden, InvalidInput, Refused
from benchpool_scheduler.resources.declaring import Resource
from benchpool_scheduler.resources.jobs import ONE_ENTRY, TRAINING_JOBS, TrainingJobSpec
from benchpool_scheduler.resources.pools import NODE_POOLS, POOL_SETTINGS, PROJECTS
from benchpool_scheduler.resources.submissions import as_submission

SETTINGS = {it.kind.kind: it for it in (PROJECTS, NODE_POOLS, POOL_SETTINGS)}
KINDS = (*SETTINGS, TRAINING_JOBS.kind.kind)
_NAME = 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """Job described by a file."""

    name: str
    spec: TrainingJobSpec


@dataclass(frozen=True, slots=True)
class File:
    """Content of a file: a configuration text, if any, and jobs."""

    configuration: str | None
    jobs: tuple[Wanted, ...]


def apply(session: Session, options: Options) -> int:
    """Apply a file. The whole file is read and checked before anything is changed."""
    path = Path(options["file"])
    source = "standard input" if str(path) == "-" else str(path)
    file = read(text_files.read(path), source)
    client, screen = session.client, session.screen
    me = client.quota().user if any(it.spec.user for it in file.jobs) else None
    for wanted in file.jobs:
        _check_user(wanted, me)
    text = file.configuration
    change = None if text is None else client.apply_config(text, file=source)
    jobs = []
    ids: dict[str, str] = {}
    for wanted in file.jobs:
        job, text = _apply_job(client, _with_ids(wanted, ids))
        ids[wanted.name] = job.id
        jobs.append(job)
        if not screen.json:
            screen.line(clean(f"{wanted.name}: job {short(job.id)} {text}, {job.state.value}."))
    _show(screen, change, jobs)
    return 0


def _with_ids(wanted: Wanted, ids: Mapping[str, str]) -> Wanted:
    """Return the job with the names of jobs in the same file in ``after`` replaced by their IDs."""
    after = tuple(ids.get(ref, ref) for ref in wanted.spec.after)
    return replace(wanted, spec=msgspec.structs.replace(wanted.spec, after=after))


def _show(screen: Screen, change: ConfigurationChange | None, jobs: Sequence[Job]) -> None:
    if screen.json:
        screen.value({"configuration": change, "jobs": jobs})
    elif change is not None:
        config_views.change(screen, change)


# --------------------------------------------------------------------------- reading


def read(text: str, source: str) -> File:
    """Parse a file. Errors: InvalidInput, naming document and field.

    >>> read("version: 1", "f").configuration
    'version: 1'
    """
    try:
        documents = [it for it in yaml.load_all(text, BoundedLoader) if it is not None]
    except yaml.YAMLError as error:
        raise InvalidInput(f"{source} is not YAML: {error}", code="invalid-file") from None
    if len(documents) == 1 and _is_plain(documents[0]):
        return File(text, ())  # unchanged, so that error lines are those of the file
    found: list[Declared] = []
    jobs: list[Wanted] = []
    for number, document in enumerate(documents, start=1):
        where = f"{source}, document {number}"
        if _is_plain(document):
            found += declared.objects(yaml.safe_dump(document), where)
            continue
        name = _checked_name(document, where)
        if document["kind"] == TRAINING_JOBS.kind.kind:
            jobs.append(Wanted(name, _job_spec(document, f"{where} ({name})")))
        else:
            found.append(_settings(document, name, where))
    if found and not any(it.resource is POOL_SETTINGS for it in found):
        raise InvalidInput(
            f"{source} has {len(found)} Projects and NodePools but no PoolSettings. The settings "
            "are applied as a whole, and objects that the file does not name are deleted. Put all "
            "of them and the PoolSettings `default` into one file, or use kubectl apply on a "
            "cluster.",
            code="settings-not-whole",
            numbers={"objects": len(found)},
        )
    return File(declared.document(found).text if found else None, tuple(jobs))


def _is_plain(document: Any) -> bool:
    return not isinstance(document, dict) or (
        "kind" not in document and "apiVersion" not in document
    )


def _checked_name(document: dict[str, Any], where: str) -> str:
    kind, version = document.get("kind"), document.get("apiVersion")
    if version != API_VERSION or kind not in KINDS:
        raise InvalidInput(
            f"{where} is {kind} of {version}; {', '.join(KINDS)} of {API_VERSION} can be applied.",
            code="unknown-kind",
            field="kind",
        )
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not 0 < len(name) <= 253:
        raise InvalidInput(
            f"{where} has no valid metadata.name. Use 1 to 253 characters.", field="metadata"
        )
    return name


def _settings(document: dict[str, Any], name: str, where: str) -> Declared:
    resource: Resource = SETTINGS[document["kind"]]
    spec: Any = _converted(document, resource.spec, f"{where} ({name})")
    return Declared(resource, name, spec)


def _job_spec(document: dict[str, Any], where: str) -> TrainingJobSpec:
    spec: TrainingJobSpec = _converted(document, TrainingJobSpec, where)
    entries = (spec.script, spec.module, spec.command, spec.notebook)
    if sum(entry is not None for entry in entries) != 1:
        raise InvalidInput(f"{where}: {ONE_ENTRY.text}", field="spec")
    if spec.bundle:
        raise InvalidInput(
            f"{where}: spec.bundle is written by the scheduler. List the files in spec.files, or "
            "send the folder with `benchpool submit`.",
            field="bundle",
        )
    if spec.environment:
        raise InvalidInput(
            f"{where}: spec.environment is written by the scheduler. Write variables into "
            "spec.env, or pass them with `benchpool submit --env`.",
            field="environment",
        )
    return spec


def _converted(document: dict[str, Any], into: Any, where: str) -> Any:
    try:
        return msgspec.convert(document.get("spec") or {}, into)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{where}, spec: {error}.", field="spec") from None


# --------------------------------------------------------------------------- jobs


def _check_user(wanted: Wanted, me: str | None) -> None:
    if wanted.spec.user is not None and wanted.spec.user != me:
        raise Forbidden(
            f"spec.user of {wanted.name} is {wanted.spec.user}, but you are {me}. Remove it, or "
            "let that user apply the file.",
            field="user",
        )


def _apply_job(client: Client, wanted: Wanted) -> tuple[Job, str]:
    """Create or update a job. Return the job and a description of the change."""
    submission = submission_of(wanted)
    job = _accepted(client, submission)
    _check_same(client.submission(job.id), submission, wanted.name)
    if job.state in ENDED:
        return job, "has ended"
    done = "is unchanged"
    if submission.name is not None and job.name != submission.name:
        job = client.rename(job.id, submission.name)
        done = f"is now called {job.name}"
    asked = {name: getattr(submission, name) for name in ROWS}
    others = {
        name: value
        for name, value in asked.items()
        if value is not None and value != getattr(job, name)
    }
    if others:
        job = client.change(job.id, **others)
        values = " and ".join(in_words(name, value) for name, value in others.items())
        done = f"now has {values}"
    if wanted.spec.suspend and job.state is not State.PAUSED:
        return client.pause(job.id, "suspend: true in its file"), "was asked to pause"
    if not wanted.spec.suspend and job.state is State.PAUSED:
        return client.resume(job.id), "was resumed"
    return job, done


def _accepted(client: Client, submission: JobSubmission) -> Job:
    """Submit a job, or return the job that was applied before with other content."""
    try:
        return client.submit(submission)
    except Refused as refused:
        known = refused.numbers.get("job") if refused.code == "repeated-key" else None
        if not isinstance(known, str):
            raise
        return client.job(known).job


def submission_of(wanted: Wanted) -> JobSubmission:
    """Return the submission. Its name makes it the same job each time."""
    submission = as_submission(wanted.spec, ())
    key = wanted.spec.key or f"apply/{wanted.name}"
    if len(key) > _NAME:
        key = f"apply/{hashlib.sha256(key.encode()).hexdigest()}"
    name = submission.name or wanted.name[:100]
    return msgspec.structs.replace(submission, name=name, key=key)


FREE = frozenset({"key", "name"})
"""Fields of a submission that may differ when it is applied again."""


def _check_same(there: JobSubmission, wanted: JobSubmission, name: str) -> None:
    for field in there.__struct_fields__:
        was, now = getattr(there, field), getattr(wanted, field)
        left_out = field == "project" and now is None
        if field in FREE or was == now or left_out or (field in ROWS and now is not None):
            continue
        raise Refused(
            f"{name} was applied before with another {field}, which cannot change. Give the new "
            "job another name.",
            code="job-stays",
            field=field,
        )
