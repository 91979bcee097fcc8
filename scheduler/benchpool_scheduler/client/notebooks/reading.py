"""Reading of notebook files, in format 4 or older."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any

from benchpool_scheduler.client.notebooks import metadata as metadata_of
from benchpool_scheduler.client.notebooks.metadata import Metadata
from benchpool_scheduler.errors import InvalidInput

KINDS = ("code", "markdown", "raw")
CONVERTED_BELOW = 4

Attachments = Mapping[str, Mapping[str, Any]]
"""Attachments of a cell: contents by name and media type."""

SKIPPED = "skip-execution"
"""Tag of the cells that a run of a notebook skips (nbclient, papermill)."""

OTHER_KERNELS = {
    r"ir[\d.]*$": "R",
    r"julia": "Julia",
    r"bash$": "Bash",
    r"octave$": "Octave",
    r"xcpp\d+": "C++",
    r"(deno|javascript|jslab|tslab)$": "JavaScript",
    r"\.net-": "a language of .NET",
}
"""Languages by patterns of usual kernel names, for notebooks without a language."""


@dataclass(frozen=True, slots=True)
class FileCell:
    """Cell of a file. ``id`` is made from its position if the format has none."""

    id: str
    source: str
    cell_type: str
    execution_count: int | None = None
    tags: tuple[str, ...] = ()
    attachments: Attachments = field(default_factory=dict)
    metadata: Metadata = field(default_factory=dict)

    @property
    def is_run(self) -> bool:
        """Whether a job runs this cell: it is code without a tag that skips it."""
        return self.cell_type == "code" and SKIPPED not in self.tags


@dataclass(frozen=True, slots=True)
class NotebookFile:
    """Notebook as saved. ``kernel`` is the name of the kernel that it was last opened with.

    The ``metadata`` of notebook and cells exclude the entries that each run writes.
    """

    cells: tuple[FileCell, ...]
    kernel: str | None = None
    metadata: Metadata = field(default_factory=dict)


def read(path: Path) -> NotebookFile:
    """Return all cells of a notebook. Formats before 4 are converted as in JupyterLab.

    Raises:
        InvalidInput: The file is not a notebook, or not in Python.
        TooLarge: Its metadata exceed the limit.
    """
    text = _text(path)
    try:
        notebook: Any = json.loads(text)
        old = int(notebook.get("nbformat") or CONVERTED_BELOW) < CONVERTED_BELOW
        if old:
            notebook = _converted(text)
        # A conversion makes random IDs.
        cells = tuple(_cell(n, each, own_id=not old) for n, each in enumerate(notebook["cells"], 1))
        metadata = notebook.get("metadata") or {}
        language, kernel = _spoken(metadata)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as bad:
        raise InvalidInput(
            f"{path.name} cannot be read as a notebook ({type(bad).__name__}). Send one that "
            "JupyterLab opens.",
            field="path",
        ) from bad
    if language.lower() not in ("python", "ipython"):
        raise InvalidInput(
            f"{path.name} is written in {language}. Jobs run only Python notebooks.", field="path"
        )
    own = own_ids(cell.id for cell in cells)
    named = tuple(replace(cell, id=id_) for cell, id_ in zip(cells, own, strict=True))
    kept = metadata_of.lasting(metadata)
    metadata_of.check_metadata(kept, (cell.metadata for cell in named))
    return NotebookFile(named, kernel, kept)


def own_ids(ids: Iterable[str]) -> list[str]:
    """Return unique IDs for the cells. Merged and generated notebooks may repeat IDs.

    >>> own_ids(["a", "b", "a", "a-3"])
    ['a', 'b', 'a-3', 'a-3-4']
    """
    own: dict[str, None] = {}
    for number, id_ in enumerate(ids, 1):
        while id_ in own:
            id_ += f"-{number}"
        own[id_] = None
    return list(own)


def _text(path: Path) -> str:
    """Return the text of a file in UTF-8, UTF-16 or UTF-32, with or without a byte order mark.

    Raises:
        InvalidInput: The file cannot be read, or has another encoding.
    """
    try:
        data = path.read_bytes()
    except OSError as bad:
        raise InvalidInput(
            f"{path.name} cannot be read ({bad.strerror}). Check its name and its permissions.",
            field="path",
        ) from bad
    try:
        return data.decode(json.detect_encoding(data))
    except UnicodeDecodeError as bad:
        raise InvalidInput(
            f"{path.name} cannot be read as a notebook: byte {bad.start + 1} is 0x"
            f"{data[bad.start]:02X}, which is not {bad.encoding.upper()} text. If it was written "
            f"on Windows, `iconv -f cp1252 -t utf-8 {quote(path.name)}` prints it in UTF-8.",
            field="path",
        ) from bad


def _converted(text: str) -> Any:
    """Return a notebook of an older format converted to format 4. Errors: ValueError."""
    import nbformat  # rarely needed, and slow to import

    try:
        return nbformat.reads(text, as_version=CONVERTED_BELOW)
    except (nbformat.ValidationError, AttributeError, KeyError, TypeError) as bad:
        raise ValueError(str(bad)) from bad


def _spoken(metadata: Any) -> tuple[str, str | None]:
    """Return the language and the kernel in the metadata."""
    spec = metadata.get("kernelspec") or {}
    language = spec.get("language") or (metadata.get("language_info") or {}).get("name")
    name = spec.get("name")
    name = name if isinstance(name, str) and name else None
    usual = (tongue for kernel, tongue in OTHER_KERNELS.items() if re.match(kernel, name or ""))
    return str(language or next(usual, "python")), name


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
        metadata_of.tags_of(metadata),
        dict(cell.get("attachments") or {}),
        metadata_of.lasting_of_cell(metadata),
    )
