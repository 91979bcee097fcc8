"""Cells with the tag ``skip-execution``: never run by a job, and reported in the dialog."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from benchpool import drafts, import_problems, notebooks
from benchpool.cells import CellSelection, NotebookCell, choose
from benchpool.cells.notebook_cells import SKIPPED
from benchpool.server.requests import LiveCell
from benchpool_scheduler.client import notebooks as notebook_files


def tagged(*sources: str, select: tuple[int, ...] = (-1,)) -> CellSelection:
    """Select among cells; a source that begins with ``@`` has the tag."""
    wanted = {number % len(sources) for number in select}
    return choose(
        [
            NotebookCell(
                f"c{n}", text.lstrip("@"), n in wanted, tags=(SKIPPED,) if text[:1] == "@" else ()
            )
            for n, text in enumerate(sources)
        ]
    )


def problems(found: CellSelection) -> list[tuple[str, str]]:
    return [(each.level, each.text) for each in found.problems]


BY_TAG = "skipped by its tag `skip-execution`"


def test_skip_tag_matches_tag_of_runner() -> None:
    assert NotebookClient.skip_cells_with_tag.default_value == SKIPPED
    assert notebook_files.SKIPPED == SKIPPED
    assert "skip_cells_with_tag" in inspect.getsource(NotebookClient.async_execute_cell)


def test_skipped_definition_is_replaced_by_earlier_and_reported() -> None:
    found = tagged("x = 1", "@x = 2", "print(x)")
    assert [each.included for each in found.cells] == [True, False, True]
    assert found.cells[1].why == f"{BY_TAG}, though it defines `x`"
    assert problems(found) == [
        ("warning", f"it defines `x` and is {BY_TAG}: `x` comes from cell 1")
    ]


def test_name_defined_only_in_skipped_cell_is_missing() -> None:
    found = tagged("@x = 2", "print(x)")
    assert found.cells[0].why == f"{BY_TAG}: `x` is missing in cell 2"
    assert problems(found) == [
        ("error", f"`x` is missing: cell 1 is {BY_TAG}; remove the tag to run it")
    ]


def test_skipped_change_is_reported() -> None:
    found = tagged("x = []", "@x.append(1)", "print(x)")
    assert [each.included for each in found.cells] == [True, False, True]
    assert problems(found) == [("warning", f"it may change `x`, and is {BY_TAG}")]


def test_unneeded_skipped_cell_is_not_reported() -> None:
    found = tagged("@y = 2", "print(1)")
    assert (found.cells[0].included, found.cells[0].why) == (False, BY_TAG)
    assert problems(found) == []


def test_selected_skipped_cell_is_kept_and_defines_nothing() -> None:
    found = tagged("x = 1", "@x = 2", "print(x)", select=(1, 2))
    assert [each.included for each in found.cells] == [True, True, True]
    assert problems(found) == [("info", f"it is {BY_TAG}; remove the tag to run it")]
    alone = tagged("x = 1", "@print(x)")
    assert [each.included for each in alone.cells] == [False, True]
    assert problems(alone)[0][0] == "error"


def test_skip_tag_is_read_from_page_and_file(tmp_path: Path) -> None:
    assert LiveCell("a", "code", "x = 1", tags=["more", SKIPPED]).as_cell().is_skipped
    cell = nbformat.v4.new_code_cell("x = 1", metadata={"tags": [SKIPPED]})
    metadata = {"language_info": {"name": "python"}}
    nbformat.write(
        nbformat.v4.new_notebook(cells=[cell], metadata=metadata), tmp_path / "tagged.ipynb"
    )
    assert [each.is_skipped for each in notebooks.read(tmp_path / "tagged.ipynb")] == [True]


def test_skip_tag_on_markdown_is_ignored() -> None:
    cells = [
        NotebookCell("a", "text", cell_type="markdown", tags=(SKIPPED,)),
        NotebookCell("b", "1", True),
    ]
    assert [each.why for each in choose(cells).cells] == [None, "selected"]


def test_imports_of_skipped_cells_are_not_checked(tmp_path: Path) -> None:
    broken = "import no_such_module_anywhere\nimport os\nos.environ['CUDA_VISIBLE_DEVICES'] = '3'"
    found = []
    for tags in ((SKIPPED,), ()):
        cells = [NotebookCell("a", broken, True, tags=tags), NotebookCell("b", "print(1)", True)]
        draft = drafts.of_cells(
            cells,
            drafts.JobOptions(),
            kind="notebook",
            folder=tmp_path,
            interpreter=sys.executable,
            path="book.ipynb",
            whole=True,
        )
        checked = import_problems.checked(draft, None, drafts.HERE)
        found.append([each.level for each in checked.problems if each.level != "info"])
    assert found == [[], ["error", "warning"]]
