"""Values inserted into a notebook at the start of its job, by papermill's conventions."""

from __future__ import annotations

import json

import nbformat
import pytest

from benchpool.runner.filling import filled
from benchpool.runner.interpreter import CannotStart


def notebook(*sources: str, tagged: int | None = None) -> nbformat.NotebookNode:
    made = nbformat.v4.new_notebook()
    made.cells = [nbformat.v4.new_code_cell(source) for source in sources]
    if tagged is not None:
        made.cells[tagged].metadata["tags"] = ["parameters"]
    return made


def sources(made: nbformat.NotebookNode) -> list[str]:
    return [cell.source for cell in made.cells]


def test_values_follow_parameters_cell_unchanged() -> None:
    book = notebook("import os", "lr = 0.1\nseed = 0", "print(lr)", tagged=1)
    made = filled(book, json.dumps({"lr": 0.01}))
    assert sources(made) == [
        "import os",
        "lr = 0.1\nseed = 0",
        "# Parameters\nlr = 0.01",
        "print(lr)",
    ]
    assert made.cells[2].metadata["tags"] == ["injected-parameters"]
    assert len({cell["id"] for cell in made.cells}) == 4
    nbformat.validate(made)


def test_constant_bound_once_is_replaced_in_place() -> None:
    made = filled(notebook("lr = 3e-4  # rate", "print(lr)"), json.dumps({"lr": 0.5}))
    assert sources(made) == ["lr = 0.5  # rate", "print(lr)"]


def test_notebook_without_values_is_unchanged() -> None:
    book = notebook("lr = 1")
    assert sources(filled(book, None)) == ["lr = 1"]


def test_value_without_parameter_is_reported() -> None:
    with pytest.raises(CannotStart, match="no parameter"):
        filled(notebook("lr = 1"), json.dumps({"rate": 2}))
