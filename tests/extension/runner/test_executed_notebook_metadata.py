"""A job runs notebooks with any metadata, and its executed copy keeps them."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import nbformat
import pytest

from benchpool_scheduler.client import notebooks
from benchpool_support.runner_jobs import NotebookJob

pytestmark = pytest.mark.slow

SPEC = {"name": "torch-env", "display_name": "Torch", "language": "python"}
OF_CELL = {
    "collapsed": "yes",
    "scrolled": 3,
    "jupyter": [],
    "slideshow": "slide",
    "deletable": "no",
    "name": "",
}


def of_four(metadata: object, cell: object) -> dict[str, Any]:
    code = {"cell_type": "code", "id": "a", "source": "print('ran', 6 * 7)", "outputs": []}
    cells = [{**code, "metadata": cell, "execution_count": None}]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}


@pytest.fixture
def job(tmp_path: Path) -> NotebookJob:
    return NotebookJob(tmp_path)


def test_executed_copy_keeps_metadata_and_names_language_run(
    job: NotebookJob, tmp_path: Path
) -> None:
    language = {"name": "python", "version": "2.6.0"}
    own = {"kernelspec": SPEC, "language_info": language, "title": "Diffusion", "odd": float("nan")}
    file = tmp_path / "book.ipynb"
    file.write_text(json.dumps(of_four(own, {"tags": ["keep"], "slideshow": {"x": 1}})))
    read = notebooks.read(file)
    (cell,) = read.cells
    sent = notebooks.JobCell(cell.id, 1, cell.source, tags=cell.tags, metadata=cell.metadata)
    job.book = json.loads(notebooks.build([sent], metadata=read.metadata))
    status, log = job.run()
    assert (status, "ran 42" in log) == (0, True), log
    text = job.copy.read_text()
    assert "NaN" not in text, "JupyterLab opens no file that has it"
    copy = json.loads(text)
    assert copy["metadata"]["kernelspec"] == SPEC
    assert (copy["metadata"]["title"], copy["metadata"]["odd"]) == ("Diffusion", None)
    assert copy["metadata"]["language_info"]["version"] == platform.python_version()
    kept = copy["cells"][0]["metadata"]
    assert (kept["tags"], kept["slideshow"]) == (["keep"], {"x": 1})
    nbformat.validate(copy)


@pytest.mark.parametrize(
    ("metadata", "cell"),
    [
        ([1], "x"),
        (None, None),
        ({"kernelspec": "x", "language_info": 3, "authors": "me"}, {"tags": "abc"}),
        ({"benchpool": [], "odd": float("nan")}, {"tags": None, "benchpool": 1}),
        ({}, OF_CELL),
        ({"kernelspec": SPEC}, {"tags": [1, "a", "a"]}),
    ],
)
def test_malformed_metadata_does_not_stop_cells(
    job: NotebookJob, metadata: object, cell: object
) -> None:
    job.book = of_four(metadata, cell)
    status, log = job.run()
    assert (status, "ran 42" in log, "Traceback" in log) == (0, True, False), log


@pytest.mark.parametrize("book", [[], {"nbformat": 4, "cells": 3}, of_four({}, {}) | {"cells": 3}])
def test_invalid_notebook_is_rejected_in_one_line(job: NotebookJob, book: object) -> None:
    job.book = book
    status, log = job.run()
    assert status == 2
    assert log.startswith(f"benchpool: {job.root / 'object'} cannot be read as a notebook: ")
    assert log.count("\n") == 1


def test_deeply_nested_notebook_is_rejected_in_one_line(job: NotebookJob) -> None:
    deep: list[Any] = []
    for _ in range(700):
        deep = [deep]
    job.book = of_four({"deep": deep}, {})
    status, log = job.run()
    assert status == 2
    assert log.endswith("cannot be read as a notebook: it is nested too deeply\n")
