"""Conversion of a submission to the spec of a ``TrainingJob`` and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from benchpool_scheduler.contract import (
    CommandEntry,
    JobSpec,
    JobSubmission,
    ModuleEntry,
    NotebookEntry,
    PodsEntry,
    ScriptEntry,
    SnapshotFile,
    Source,
)
from benchpool_scheduler.contract.parameters import ParameterValue
from benchpool_scheduler.contract.spec import Asked
from benchpool_scheduler.contract.submission import Entry
from benchpool_scheduler.resources.entries import (
    FileSpec,
    Module,
    Notebook,
    Origin,
    Pods,
    Script,
    Topology,
)
from benchpool_scheduler.resources.jobs import (
    TrainingJobSpec,
)

INLINE = 100
"""Maximum number of files listed in the object. More are listed in an uploaded one (``bundle``)."""

ASKED = Asked.__struct_fields__
SAME = {
    **{name: name for name in ("name", "project", "env", "key", "interpreter", "image", *ASKED)},
    "working_dir": "working_folder",
    "output_dir": "output_folder",
}
"""Fields of a submission that a spec has unchanged, with their names there."""

HERE = frozenset({"entry", "files", "source", "required_level", "preferred_level", "parameters"})
"""Fields of a submission that are converted one by one."""


def as_spec(
    submission: JobSubmission,
    user: str,
    name: str,
    project: str,
    bundle: str | None = None,
    environment: str | None = None,
) -> TrainingJobSpec:
    """Return the spec of an accepted submission.

    Args:
        bundle: Object that lists the files; None lists them in the spec.
        environment: Object that holds the variables; None has them in the spec.
    """
    entry: dict[str, Any] = {}
    match submission.entry:
        case ScriptEntry(path=path, args=args):
            entry["script"] = Script(path, args)
        case ModuleEntry(module=module, args=args):
            entry["module"] = Module(module, args)
        case CommandEntry(argv=argv):
            entry["command"] = argv
        case NotebookEntry(notebook=sha256, name=file, fill=fill):
            entry["notebook"] = Notebook(sha256, file, fill)
        case PodsEntry(namespace=space, owner_kind=kind, owner=owner, pods=pods):
            entry["pods"] = Pods(space, kind, owner, pods)
    files = [FileSpec(it.path, it.sha256, it.size, it.executable) for it in submission.files]
    same = {there: getattr(submission, here) for here, there in SAME.items()}
    if environment is not None:
        same["env"] = {}
    return TrainingJobSpec(
        **entry,
        **same | {"name": name, "project": project},
        environment=environment,
        user=user,
        topology=_topology(submission),
        files=[] if bundle else files,
        bundle=bundle,
        source=None if submission.source is None else _origin(submission.source),
        parameters={
            name: msgspec.json.encode(value).decode()
            for name, value in submission.parameters.items()
        },
    )


def asked_in(spec: TrainingJobSpec) -> JobSpec:
    """Return the requirements in the spec of an object."""
    levels = spec.topology or Topology()
    return JobSpec(
        **{name: getattr(spec, name) for name in ASKED},
        required_level=levels.required,
        preferred_level=levels.preferred,
    )


def parameters_of(spec: TrainingJobSpec) -> dict[str, ParameterValue]:
    """Return the parameters of a spec. A value that is not JSON is a text."""
    found: dict[str, ParameterValue] = {}
    for name, text in spec.parameters.items():
        try:
            found[name] = msgspec.json.decode(text, type=ParameterValue)
        except msgspec.DecodeError:
            found[name] = text
    return found


def _topology(submission: JobSubmission) -> Topology | None:
    required, preferred = submission.required_level, submission.preferred_level
    return Topology(required, preferred) if required or preferred else None


def _origin(source: Source) -> Origin:
    return Origin(source.kind, source.path, source.cells)


def as_submission(
    spec: TrainingJobSpec,
    files: Sequence[SnapshotFile],
    environment: Mapping[str, str] | None = None,
) -> JobSubmission:
    """Return the submission that a spec describes.

    Args:
        files: Files of the bundle. Without a bundle they are taken from the spec.
        environment: Variables from the separate object, if there is one.
    """
    same: dict[str, Any] = {here: getattr(spec, there) for here, there in SAME.items()}
    if environment is not None:
        same["env"] = dict(environment)
    listed = files if spec.bundle else [_file(it) for it in spec.files]
    topology = spec.topology or Topology()
    return JobSubmission(
        entry=_entry(spec),
        **same,
        required_level=topology.required,
        preferred_level=topology.preferred,
        files=list(listed),
        parameters=parameters_of(spec),
        source=None
        if spec.source is None
        else Source(spec.source.kind, spec.source.path, spec.source.cells),
    )


def _file(it: FileSpec) -> SnapshotFile:
    return SnapshotFile(it.path, it.sha256, it.size, it.executable)


def _entry(spec: TrainingJobSpec) -> Entry:
    if spec.pods is not None:
        it = spec.pods
        return PodsEntry(it.namespace, it.owner_kind, it.owner, it.names)
    if spec.script is not None:
        return ScriptEntry(spec.script.path, spec.script.args)
    if spec.module is not None:
        return ModuleEntry(spec.module.module, spec.module.args)
    if spec.notebook is not None:
        return NotebookEntry(spec.notebook.sha256, spec.notebook.name, spec.notebook.fill)
    return CommandEntry(spec.command or [])


def bundle_of(files: Sequence[SnapshotFile]) -> bytes:
    """Return the content of the object that lists many files."""
    return msgspec.json.encode(list(files))


def files_of(bundle: bytes) -> list[SnapshotFile]:
    """Parse the content written by ``bundle_of``. Errors: msgspec's."""
    return msgspec.json.decode(bundle, type=list[SnapshotFile])


def environment_of(job: str, variables: Mapping[str, str], salt: str) -> bytes:
    """Return the content of the object that holds a job's variables.

    Many users can read its hash. The salt prevents them from guessing the content.
    """
    return msgspec.json.encode({"job": job, "variables": variables, "salt": salt})


def environment_in(content: bytes, job: str) -> dict[str, str]:
    """Parse the content written by ``environment_of``.

    Errors: msgspec's; ValueError for the content of another job.

    >>> environment_in(environment_of("a", {"KEY": "secret"}, "salt"), "a")
    {'KEY': 'secret'}
    """
    held = msgspec.json.decode(content, type=_Environment)
    if held.job != job:
        raise ValueError(f"the variables belong to job {held.job}, not to {job}")
    return held.variables


class _Environment(msgspec.Struct, frozen=True):
    job: str
    variables: dict[str, str]
