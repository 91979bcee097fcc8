"""Notebooks as job input: reading a file as cells, and building the job's notebook from cells."""

from benchpool_scheduler.client.notebooks.job_notebook import JobCell, build
from benchpool_scheduler.client.notebooks.metadata import (
    Metadata,
    check_metadata,
    lasting,
    lasting_of_cell,
    tags_of,
)
from benchpool_scheduler.client.notebooks.parameters import (
    NotebookParameter,
    Parametrized,
    declared,
    recorded,
    with_values,
)
from benchpool_scheduler.client.notebooks.reading import (
    SKIPPED,
    FileCell,
    NotebookFile,
    own_ids,
    read,
)

__all__ = [
    "SKIPPED",
    "FileCell",
    "JobCell",
    "Metadata",
    "NotebookFile",
    "NotebookParameter",
    "Parametrized",
    "build",
    "check_metadata",
    "declared",
    "lasting",
    "lasting_of_cell",
    "own_ids",
    "read",
    "recorded",
    "tags_of",
    "with_values",
]
