"""Notebooks on their way into a job: a file read as cells, and cells made into what a job runs."""

from benchpool_scheduler.client.notebooks.job_notebook import JobCell, build
from benchpool_scheduler.client.notebooks.parameters import (
    NotebookParameter,
    Parametrized,
    declared,
    recorded,
    with_values,
)
from benchpool_scheduler.client.notebooks.reading import FileCell, NotebookFile, own_ids, read

__all__ = [
    "FileCell",
    "JobCell",
    "NotebookFile",
    "NotebookParameter",
    "Parametrized",
    "build",
    "declared",
    "own_ids",
    "read",
    "recorded",
    "with_values",
]
