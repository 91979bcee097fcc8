"""The form that deletes files of an ended job, with their kinds and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchpool_scheduler.contract.forms import fields
from benchpool_scheduler.contract.jobs import JobDiscard
from benchpool_scheduler.phrases import data_size


@dataclass(frozen=True, slots=True)
class FilesKind:
    """Kind of files: its ``title``, and ``size``, which would be freed."""

    name: str
    title: str
    size: str


def kinds_of(sizes: Mapping[str, int] | None) -> tuple[FilesKind, ...]:
    """Return a job's kinds of files with their sizes; None for unknown sizes.

    >>> [(one.name, one.size) for one in kinds_of({"results": 1536})]
    [('results', '1.5 KiB')]
    >>> [one.size for one in kinds_of(None)]
    ['size not counted: many files', 'size not counted: many files', 'size not counted: many files']
    """
    return tuple(
        FilesKind(
            field.name,
            field.title,
            "size not counted: many files" if sizes is None else data_size(sizes[field.name]),
        )
        for field in fields(JobDiscard)
        if sizes is None or field.name in sizes
    )
