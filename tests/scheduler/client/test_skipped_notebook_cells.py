"""Checks of a notebook in the terminal: the cells that a job runs, without skipped cells."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat

from benchpool_scheduler.client import imports, notebooks
from benchpool_scheduler.client.code_warnings import of_submission
from benchpool_scheduler.contract import JobSubmission, NotebookEntry

BROKEN = "import no_such_module_anywhere, os\nos.environ['CUDA_VISIBLE_DEVICES'] = '3'"


def findings(folder: Path, tags: list[str]) -> list[str]:
    cell = nbformat.v4.new_code_cell(BROKEN, metadata={"tags": tags})
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "book.ipynb")
    job = JobSubmission(entry=NotebookEntry("a" * 64, "book.ipynb"), interpreter=sys.executable)
    missing = imports.missing_of(folder, job, {}, "book.ipynb")
    warned = of_submission(folder, job, "book.ipynb")
    return [*(each.where for each in missing), *(each.where for each in warned)]


def test_skipped_cell_is_not_checked(tmp_path: Path) -> None:
    assert findings(tmp_path, ["mine"]) == ["cell 1", "cell 1"]
    assert findings(tmp_path, ["mine", notebooks.SKIPPED]) == []
