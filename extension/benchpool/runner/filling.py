"""Inserts the values of its parameters into a notebook before it runs."""

from __future__ import annotations

import json

import nbformat

from benchpool.runner.interpreter import CannotStart
from benchpool_scheduler.errors import InvalidInput


def filled(notebook: nbformat.NotebookNode, values: str | None) -> nbformat.NotebookNode:
    """Return a notebook with these values, or unchanged without values.

    Args:
        values: Values by name, as JSON.

    Raises:
        CannotStart: It has no such parameter, or a value has the wrong type.
    """
    if values is None:
        return notebook
    from benchpool_scheduler.client.notebooks import JobCell, with_values

    cells = {cell["id"]: cell for cell in notebook.cells}
    sent = [
        JobCell(cell["id"], place, cell.source, cell.cell_type, tuple(_tags(cell)))
        for place, cell in enumerate(notebook.cells, start=1)
    ]
    try:
        made = with_values(sent, json.loads(values)).cells
    except InvalidInput as refused:
        raise CannotStart(refused.message) from refused
    for one in made:
        if one.id in cells:
            cells[one.id].source = one.source
        else:
            tags = {"tags": list(one.tags)}
            cells[one.id] = nbformat.v4.new_code_cell(one.source, id=one.id, metadata=tags)
    notebook.cells = [cells[one.id] for one in made]
    return notebook


def _tags(cell: nbformat.NotebookNode) -> list[str]:
    return [str(tag) for tag in cell.metadata.get("tags", [])]
