"""Parameters set from Python, the magic and functions, in the run and in the facts of the job."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest

import benchpool
from benchpool import draft_command, magic
from benchpool_scheduler.errors import InvalidInput

pytestmark = pytest.mark.slow


@pytest.fixture
def book(susan: Path) -> Path:
    cells = [
        nbformat.v4.new_code_cell("lr: float = 0.1  # step size\nname = 'a'"),
        nbformat.v4.new_code_cell("seed = 7\nprint('got', lr, name, seed)"),
    ]
    cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), susan / "book.ipynb")
    return susan / "book.ipynb"


def test_parameter_values_appear_in_copy_and_job_facts(book: Path) -> None:
    job = benchpool.submit(
        "book.ipynb",
        name="run",
        parameters={"seed": 8},
        **{"lr": 1},  # type: ignore[call-overload]
    ).wait()
    assert "got 1.0 a 8\n" in job.logs()
    assert job.facts.parameters == {"lr": 1.0, "name": "a", "seed": 8}
    assert benchpool.jobs()[0].facts.parameters == job.facts.parameters
    (copy,) = (book.parent / "benchpool-results").glob("run-*/book-*.ipynb")
    _, first, injected, second = nbformat.read(copy, as_version=4).cells
    assert first.metadata.tags == ["parameters"]
    assert (injected.source, injected.metadata.tags) == (
        "# Parameters\nlr = 1.0",
        ["injected-parameters"],
    )
    assert second.source.startswith("seed = 8\n")


def test_wrong_parameter_name_or_type_is_rejected_before_sending(book: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^book.ipynb has no parameter `gpu`: it has lr, name"):
        benchpool.submit("book.ipynb", **{"gpu": 2})  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="`lr` must be a number") as refused:
        benchpool.submit("book.ipynb", parameters={"lr": "fast"})
    assert refused.value.field == "parameters.lr"
    (book.parent / "train.py").write_text("print(1)")
    with pytest.raises(InvalidInput, match=r"^train.py is a script, and parameters are"):
        benchpool.submit("train.py", parameters={"lr": 1})


def test_magic_sets_constants_of_included_cells(susan: Path) -> None:
    cells = magic.cells_of(["", "lr = 0.1\nunused = 2", "%%train"], "steps = 3\nprint(lr, steps)")
    options = magic.read_options("-p lr=0.5 --parameter steps=4")
    draft = magic.draft_of(cells, options, {}, sys.executable)
    (text,) = [each for each in draft.contents.values() if isinstance(each, bytes)]
    sources = [each.source for each in nbformat.reads(text.decode(), as_version=4).cells]
    assert sources == ["lr = 0.5\nunused = 2", "# %%train\nsteps = 4\nprint(lr, steps)"]
    assert draft.submission.parameters == {"lr": 0.5, "steps": 4}
    assert draft_command.command(draft) == "%%train --gpus 1 --parameter lr=0.5 --parameter steps=4"
    with pytest.raises(
        InvalidInput, match=r"^The selection has no parameter `lrr`: did you mean lr"
    ):
        magic.draft_of(cells, magic.read_options("-p lrr=1"), {}, sys.executable)
    with pytest.raises(InvalidInput, match=r"^-p lr is not NAME=VALUE"):
        magic.read_options("-p lr")
