"""Notebook files as job input: all cells, without outputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchpool_scheduler.client import notebooks
from benchpool_scheduler.contract.parameters import ParameterValue


def cells_of(path: Path) -> bytes:
    """Return the notebook that a job runs. Equal cells give equal bytes.

    Errors: InvalidInput for a file that is not a Python notebook.
    """
    read = notebooks.read(path)
    return notebooks.build(_cells(read), path=path.name, metadata=read.metadata)


def parametrized(
    path: Path, given: Mapping[str, object]
) -> tuple[bytes, Mapping[str, ParameterValue]]:
    """Return the notebook with values of its parameters, and all parameters by name.

    Errors: as ``cells_of``, and InvalidInput for an unknown parameter or a value of another type.
    """
    read = notebooks.read(path)
    made = notebooks.with_values(_cells(read), given, path.name)
    return notebooks.build(made.cells, path=path.name, metadata=read.metadata), made.values


def names(path: Path) -> list[str]:
    """Return the names of a notebook's parameters. Errors: as ``cells_of``."""
    return [one.name for one in notebooks.declared(_cells(notebooks.read(path)))]


def _cells(read: notebooks.NotebookFile) -> list[notebooks.JobCell]:
    return [
        notebooks.JobCell(
            each.id,
            number,
            each.source,
            each.cell_type,
            each.tags,
            each.attachments,
            each.metadata,
        )
        for number, each in enumerate(read.cells, 1)
    ]
