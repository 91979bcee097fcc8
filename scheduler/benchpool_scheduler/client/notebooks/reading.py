"""Reads a notebook file, of format 4 or an older one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchpool_scheduler.errors import InvalidInput

KINDS = ("code", "markdown", "raw")
CONVERTED_BELOW = 4

Attachments = Mapping[str, Mapping[str, Any]]
"""Contents by name and type, as the cells of a notebook hold them."""


@dataclass(frozen=True, slots=True)
class FileCell:
    """A cell of a file; ``id`` is made of its place where the format has none."""

    id: str
    source: str
    cell_type: str
    execution_count: int | None = None
    tags: tuple[str, ...] = ()
    attachments: Attachments = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotebookFile:
    """A notebook as saved; ``kernel`` is the name of the kernel that it was last opened with."""

    cells: tuple[FileCell, ...]
    kernel: str | None = None


def read(path: Path) -> NotebookFile:
    """Return all cells of a notebook. Formats before 4 are converted as JupyterLab does.

    Raises:
        InvalidInput: It cannot be read as a notebook, or is not in Python.
    """
    try:
        text = path.read_text("utf-8")
        notebook: Any = json.loads(text)
        old = int(notebook.get("nbformat") or CONVERTED_BELOW) < CONVERTED_BELOW
        if old:
            notebook = _converted(text)
        # A conversion draws ids, another one each time.
        cells = tuple(_cell(n, each, own_id=not old) for n, each in enumerate(notebook["cells"], 1))
        language, kernel = _spoken(notebook.get("metadata") or {})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as bad:
        raise InvalidInput(
            f"{path.name} cannot be read as a notebook ({type(bad).__name__}): open and save it in "
            "JupyterLab first.",
            field="path",
        ) from bad
    if language.lower() not in ("python", "ipython"):
        raise InvalidInput(
            f"{path.name} is written in {language}; a job runs notebooks in Python.", field="path"
        )
    return NotebookFile(cells, kernel)


def _converted(text: str) -> Any:
    """Return a notebook of an older format as one of format 4. Errors: ValueError."""
    import nbformat  # seldom needed, and slow to load

    try:
        return nbformat.reads(text, as_version=CONVERTED_BELOW)
    except (nbformat.ValidationError, AttributeError, KeyError, TypeError) as bad:
        raise ValueError(str(bad)) from bad


def _spoken(metadata: Any) -> tuple[str, str | None]:
    """Return the language and the kernel that the metadata name."""
    spec = metadata.get("kernelspec") or {}
    said = spec.get("language") or (metadata.get("language_info") or {}).get("name")
    name = spec.get("name")
    return str(said or "python"), name if isinstance(name, str) and name else None


def _cell(number: int, cell: Any, *, own_id: bool) -> FileCell:
    kind, source = cell["cell_type"], cell["source"]
    if kind not in KINDS:
        raise ValueError(kind)
    metadata = cell.get("metadata") or {}
    count = cell.get("execution_count")
    return FileCell(
        str((own_id and cell.get("id")) or f"cell-{number}"),
        source if isinstance(source, str) else "".join(source),
        kind,
        count if isinstance(count, int) else None,
        tuple(each for each in metadata.get("tags") or () if isinstance(each, str)),
        dict(cell.get("attachments") or {}),
    )
