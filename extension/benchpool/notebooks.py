"""The cells of a notebook file, for the analysis."""

from __future__ import annotations

from pathlib import Path

from benchpool.cells import NotebookCell
from benchpool_scheduler.client import notebooks


def read(path: Path) -> list[NotebookCell]:
    """Return all cells of a notebook, code cells selected. Errors: InvalidInput."""
    return [
        NotebookCell(
            each.id,
            each.source,
            each.cell_type == "code",
            each.cell_type,
            each.execution_count,
            each.tags,
            each.attachments,
        )
        for each in notebooks.read(path).cells
    ]
