"""Reading the cells of a notebook file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchpool.cells import NotebookCell
from benchpool_scheduler.errors import InvalidInput


def read(path: Path) -> list[NotebookCell]:
    """Return all cells of a notebook, code cells selected.

    Raises:
        InvalidInput: It cannot be read as a notebook of format 4.
    """
    try:
        notebook: Any = json.loads(path.read_text("utf-8"))
        cells = notebook["cells"]
        return [_cell(number, each) for number, each in enumerate(cells)]
    except (OSError, ValueError, KeyError, TypeError) as bad:
        raise InvalidInput(
            f"{path.name} cannot be read as a notebook ({type(bad).__name__}): open and save it in "
            "JupyterLab first.",
            field="path",
        ) from bad


def _cell(number: int, cell: Any) -> NotebookCell:
    source = cell["source"]
    text = source if isinstance(source, str) else "".join(source)
    kind = str(cell["cell_type"])
    # Before format 4.5 cells had no ids.
    id_ = str(cell.get("id") or f"cell-{number}")
    return NotebookCell(id_, text, kind == "code", kind, cell.get("execution_count"))
