"""Submission of a job: its requirements, what runs, and the contents that belong to it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from benchpool_scheduler.contract.parameters import Parameters
from benchpool_scheduler.contract.scalars import Argument, FilePath, ImageName, Name, Sha256
from benchpool_scheduler.contract.spec import JobSpec

Variables = dict[
    Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)", max_length=200)], Argument
]
"""Variables of a job's environment, by name."""


class ScriptEntry(Struct, frozen=True, forbid_unknown_fields=True, tag="script", tag_field="kind"):
    """Entry that runs ``interpreter PATH ARGS...``. The path is relative to the working folder."""

    path: FilePath
    args: list[Argument] = []


class ModuleEntry(Struct, frozen=True, forbid_unknown_fields=True, tag="module", tag_field="kind"):
    """Entry that runs ``interpreter -m MODULE ARGS...``."""

    module: Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$(?!\n)", max_length=200)]
    args: list[Argument] = []


class CommandEntry(
    Struct, frozen=True, forbid_unknown_fields=True, tag="command", tag_field="kind"
):
    """Entry that runs a command as given, without a shell."""

    argv: Annotated[list[Argument], Meta(min_length=1, max_length=4096)]


class NotebookEntry(
    Struct, frozen=True, forbid_unknown_fields=True, tag="notebook", tag_field="kind"
):
    """Entry that executes a notebook, cell by cell. Its text is an uploaded object.

    ``name`` is the file name of the executed copy in the output folder. ``fill`` inserts the values
    of ``parameters`` into its cells at the start.
    """

    notebook: Sha256
    name: Annotated[str, Meta(pattern=r"^[^/\x00]{1,200}\.ipynb$(?!\n)")]
    fill: bool = False


class PodsEntry(Struct, frozen=True, forbid_unknown_fields=True, tag="pods", tag_field="kind"):
    """Entry for foreign pods in a namespace of a cluster. Only the scheduler itself sends these.

    ``owner`` is the object that created them, as ``Deployment`` and its name. A bare pod is its own
    owner.
    """

    namespace: Annotated[str, Meta(min_length=1, max_length=63)]
    owner_kind: Annotated[str, Meta(min_length=1, max_length=100)]
    owner: Annotated[str, Meta(min_length=1, max_length=253)]
    pods: Annotated[list[Annotated[str, Meta(max_length=253)]], Meta(min_length=1, max_length=4096)]


Entry = ScriptEntry | ModuleEntry | CommandEntry | NotebookEntry | PodsEntry


class SnapshotFile(Struct, frozen=True, forbid_unknown_fields=True):
    """File of the submitted folder. Its content is an uploaded object."""

    path: FilePath
    sha256: Sha256
    size: Annotated[int, Meta(ge=0)]
    executable: bool = False


SourceKind = Literal[
    "cells", "notebook", "script", "python", "terminal", "magic", "function", "self-test"
]
"""Way in which a job was sent."""


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """Origin of a submission, so that a notebook finds its jobs again."""

    kind: SourceKind
    path: Annotated[str, Meta(max_length=4096)] | None = None
    cells: Annotated[list[Annotated[str, Meta(max_length=128)]], Meta(max_length=10_000)] = []


class SentCell(Struct, frozen=True):
    """Cell as it was sent. ``number`` is its position in the sender's notebook, from 1."""

    id: str
    number: int
    cell_type: str
    source: str


class SentCode(Struct, frozen=True):
    """Code that was sent with a job: the cells of a notebook, or the text of a script.

    ``command`` is the command of a job without either. ``text`` is null for a script whose file was
    not uploaded. ``cut`` is whether the text was truncated.
    """

    job: str
    kind: Literal["notebook", "script", "command"]
    source: Source | None
    cells: list[SentCell] = []
    text: str | None = None
    cut: bool = False
    command: list[str] = []


class JobSubmission(JobSpec, frozen=True, forbid_unknown_fields=True, omit_defaults=False):
    """Submission of a job: its requirements on the pool, and what to run.

    ``image`` is for clusters; by default jobs run in the pool's own image. Without ``working_dir``
    the job runs in a copy of ``files``; with it (an absolute path) it runs there. The contents of
    its output folder are copied to ``output_dir``. ``key`` makes a repeat of the same submission
    harmless. ``parameters`` only describe the job, for search and comparison: the code already
    contains them.
    """

    entry: Entry
    name: Name | None = None
    project: Name | None = None
    env: Variables = field(default_factory=dict)
    key: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    interpreter: FilePath | None = None
    working_dir: FilePath | None = None
    output_dir: FilePath | None = None
    files: Annotated[list[SnapshotFile], Meta(max_length=100_000)] = field(default_factory=list)
    source: Source | None = None
    image: ImageName | None = None
    parameters: Parameters = field(default_factory=dict)


class Missing(Struct, frozen=True, forbid_unknown_fields=True):
    """List of content hashes: those of a client, or those that the service lacks."""

    sha256: Annotated[list[Sha256], Meta(max_length=100_000)]
