"""Cells of a notebook file, for the analysis."""

from __future__ import annotations

from pathlib import Path

from benchpool.cells import NotebookCell
from benchpool_scheduler.client import notebooks


def read(path: Path) -> list[NotebookCell]:
    """Return all cells of a notebook, with the code cells selected.

    Raises:
        InvalidInput: The notebook cannot be read.
    """
    cells, _ = read_with_metadata(path)
    return cells


def read_with_metadata(path: Path) -> tuple[list[NotebookCell], notebooks.Metadata]:
    """Return the cells, and the notebook's metadata to send.

    Raises:
        InvalidInput: The notebook cannot be read.
    """
    file = notebooks.read(path)
    cells = [
        NotebookCell(
            each.id,
            each.source,
            each.cell_type == "code",
            each.cell_type,
            each.execution_count,
            each.tags,
            each.attachments,
            metadata=each.metadata,
        )
        for each in file.cells
    ]
    return cells, file.metadata
