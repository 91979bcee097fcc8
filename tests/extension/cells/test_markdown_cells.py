"""Markdown cells that are sent with the code cells they belong to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from benchpool.cells import NotebookCell
from benchpool.drafts import JobOptions, of_cells

CELLS = (
    NotebookCell("title", "# All of it", cell_type="markdown"),
    NotebookCell("data", "x = 1"),
    NotebookCell("aside", "Something else", cell_type="markdown"),
    NotebookCell("plot", "print('plot')"),
    NotebookCell("why", "## Why", cell_type="markdown"),
    NotebookCell("train", "print(x)", selected=True),
    NotebookCell("end", "The end", cell_type="markdown", selected=True),
)


def sent(folder: Path, *, whole: bool = False) -> list[str]:
    draft = of_cells(
        [replace(cell, selected=cell.selected or whole) for cell in CELLS],
        JobOptions(),
        kind="cells",
        folder=folder,
        interpreter="python3",
        path="train.ipynb",
        whole=whole,
    )
    (text,) = (it for it in draft.contents.values() if isinstance(it, bytes))
    return [cell["id"] for cell in json.loads(text)["cells"]]


def test_prose_before_sent_cells_and_selected_prose_is_included(
    tmp_path: Path,
) -> None:
    assert sent(tmp_path) == ["title", "data", "why", "train", "end"]


def test_whole_notebook_keeps_all_prose(tmp_path: Path) -> None:
    assert sent(tmp_path, whole=True) == ["title", "data", "aside", "plot", "why", "train", "end"]


def test_executed_copy_has_own_name(tmp_path: Path) -> None:
    draft = of_cells(
        CELLS, JobOptions(), kind="cells", folder=tmp_path, interpreter="p", path="train.ipynb"
    )
    name = draft.submission.entry.name  # type: ignore[union-attr]
    assert name.startswith("train-")
    assert name.endswith(".ipynb")
    assert Path(draft.submission.output_dir or "").name == Path(name).stem
