"""The form that deletes files of an ended job: what of it there is, and how many bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchpool_scheduler.contract.forms import fields
from benchpool_scheduler.contract.jobs import JobDiscard
from benchpool_scheduler.phrases import data_size


@dataclass(frozen=True, slots=True)
class FilesKind:
    """A kind that may be chosen: its ``title``, and ``size`` how much is deleted."""

    name: str
    title: str
    size: str


def kinds_of(sizes: Mapping[str, int] | None) -> tuple[FilesKind, ...]:
    """Return the kinds of files that a job has, with their sizes, None where those are not known.

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
