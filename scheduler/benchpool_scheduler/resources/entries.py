"""Entries of a ``TrainingJob``: what it runs, its files, and its topology."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from benchpool_scheduler.contract import FilePath, Sha256, SourceKind

ARGUMENTS = Meta(max_length=4096, description="Arguments, passed unchanged without a shell.")
Argument = Annotated[str, Meta(max_length=32768)]
Level = Annotated[str, Meta(min_length=1, max_length=316)]


def _about(text: str, **bounds: Any) -> Meta:
    return Meta(description=text, **bounds)


class Script(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Script that runs as `interpreter PATH ARGS...` in the working folder."""

    path: Annotated[FilePath, _about("Path relative to the working folder.")]
    args: Annotated[list[Argument], ARGUMENTS] = []


class Module(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Module that runs as `interpreter -m MODULE ARGS...`."""

    module: Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$", max_length=200)]
    args: Annotated[list[Argument], ARGUMENTS] = []


class Notebook(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Notebook that is executed cell by cell."""

    sha256: Annotated[Sha256, _about("Hash of the uploaded object with the notebook's text.")]
    name: Annotated[
        str,
        Meta(
            pattern=r"^[^/\x00]{1,200}\.ipynb$",
            max_length=206,
            description="File name of the executed copy in the output folder.",
        ),
    ]
    fill: Annotated[bool, _about("Insert the values of parameters into its cells.")] = False


class Pods(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """Foreign pods in an admitted namespace. The scheduler itself writes this."""

    namespace: Annotated[str, Meta(min_length=1, max_length=63)]
    owner_kind: Annotated[str, Meta(min_length=1, max_length=100)]
    owner: Annotated[str, Meta(min_length=1, max_length=253)]
    names: Annotated[
        list[Annotated[str, Meta(max_length=253)]],
        Meta(min_length=1, max_length=4096, description="Names of the pods, by worker."),
    ]


class Topology(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Required or preferred closeness of the workers, by node labels, e.g. of racks."""

    required: Annotated[
        Level | None, _about("Label whose domain must hold all workers; otherwise the job waits.")
    ] = None
    preferred: Annotated[Level | None, _about("Label whose domains are tried first.")] = None


class FileSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """File of the working folder. Its content is an uploaded object."""

    path: FilePath
    sha256: Sha256
    size: Annotated[int, Meta(ge=0)]
    executable: bool = False


class Origin(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Origin of the submission, so that a notebook finds its jobs again."""

    kind: SourceKind
    path: Annotated[str, Meta(max_length=4096)] | None = None
    cells: Annotated[list[Annotated[str, Meta(max_length=128)]], Meta(max_length=10_000)] = []
