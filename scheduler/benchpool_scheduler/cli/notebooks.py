"""A notebook file as what a job runs: all of its cells, without outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchpool_scheduler.errors import InvalidInput

CODE = ("code", "markdown", "raw")


def cells_of(path: Path) -> bytes:
    """Return the notebook that a job runs: equal cells give equal bytes.

    Errors: InvalidInput for what is no notebook, an old one, or one that is not in Python.
    """
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        metadata, cells = found["metadata"], [_cell(*each) for each in enumerate(found["cells"], 1)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput(
            f"{path.name} cannot be read as a notebook (nbformat 4): open it in JupyterLab and "
            "save it again.",
            field="entry",
        ) from None
    language = str((metadata.get("kernelspec") or {}).get("language") or "python")
    if language.lower() != "python":
        raise InvalidInput(
            f"{path.name} is written in {language}; a job runs notebooks in Python.", field="entry"
        )
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
            "benchpool": {"path": path.name},
        },
        "cells": cells,
    }
    return json.dumps(notebook, indent=1).encode()


def _cell(number: int, cell: Any) -> dict[str, Any]:
    """Return a cell as it is sent; ``number`` is its place on the sender's screen."""
    kind, source = cell["cell_type"], cell["source"]
    if kind not in CODE:
        raise ValueError(kind)
    made: dict[str, Any] = {
        "cell_type": kind,
        "id": cell.get("id") or f"cell-{number}",
        "metadata": {"benchpool": {"number": number}},
        "source": source if isinstance(source, str) else "".join(source),
    }
    if kind == "code":
        made |= {"execution_count": None, "outputs": []}
    return made
