"""The cells of a notebook file, for the analysis."""

from __future__ import annotations

from pathlib import Path

from benchpool.cells import NotebookCell
from benchpool_scheduler.client import notebooks


def read(path: Path) -> list[NotebookCell]:
    """Return all cells of a notebook, code cells selected. Errors: InvalidInput."""
    cells, _ = read_with_metadata(path)
    return cells


def read_with_metadata(path: Path) -> tuple[list[NotebookCell], notebooks.Metadata]:
    """Return the same, and the metadata of the notebook that go along. Errors: InvalidInput."""
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
