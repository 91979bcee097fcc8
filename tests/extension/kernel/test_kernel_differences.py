"""Differences between the kernel's state and the cells that the dialog reports."""

from __future__ import annotations

from typing import Any

from benchpool.cells import KnownBeside, NotebookCell, choose
from benchpool.kernel.answer import KernelAnswer


def problems(
    cells: list[str], ran: list[str], *, deleted: tuple[int, ...] = (), **more: Any
) -> list[str]:
    """Return the problems reported when the last cell is sent."""
    runs: dict[int, tuple[int, ...]] = more.get("runs", {})
    given = [
        NotebookCell(str(at), text, at == len(cells) - 1, runs=runs.get(at, ()))
        for at, text in enumerate(cells)
    ]
    kernel = KernelAnswer({}, ran, more.get("first", 1), 0.0)
    return [
        each.text for each in choose(given, seen=KnownBeside(kernel, frozenset(deleted))).problems
    ]


def test_unchanged_session_reports_no_differences() -> None:
    assert problems(["df = [1]", "df.append(2)", "print(df)"], ["df = [1]", "df.append(2)"]) == []
    assert problems(["df = [1]", "print(df)"], []) == []  # new kernel


def test_older_cell_text_is_reported_with_cell() -> None:
    assert problems(["df = [1]", "print(df)"], ["df = [1, 2]"], runs={0: (1,)}) == [
        "`df` here is from an older version of cell 1; the job runs cell 1 in its current version"
    ]


def test_deleted_cell_is_reported_with_number() -> None:
    cells, ran = ["df = [1]", "print(df)"], ["df = [1]", "df = [7]"]
    assert problems(cells, ran, deleted=(2,)) == [
        "`df` here is from a deleted cell (In [2]); the job runs cell 1 in its current version"
    ]
    assert problems(cells, ran, first=41) == [
        "`df` here is from code that is in no cell now (In [42]); "
        "the job runs cell 1 in its current version"
    ]


def test_later_cell_run_last_is_reported() -> None:
    cells = [NotebookCell("a", "x = 1"), NotebookCell("b", "print(x)", True)]
    below = NotebookCell("c", "x = 2")
    kernel = KernelAnswer({}, ["x = 1", "x = 2"], 1, 0.0)
    (problem,) = choose([*cells, below], seen=KnownBeside(kernel)).problems
    assert problem.text == (
        "`x` here is from cell 3, which ran last; the job runs cell 1 in its current version"
    )
    assert problem.cell == "a"


def test_change_by_deleted_text_is_reported() -> None:
    assert problems(["df = [1]", "print(df)"], ["df = [1]", "df.append(2)"]) == [
        "`df` here may have been changed by code that is in no cell now (In [2]), "
        "which the job does not run"
    ]


def test_different_execution_order_is_reported_with_cells() -> None:
    cells = ["x = 1", "y = 2", "print(x, y)"]
    assert problems(cells, ["y = 2", "x = 1"]) == [
        "here cell 2 ran before cell 1; the job runs them from top to bottom"
    ]


def test_execution_counts_of_other_session_report_no_order() -> None:
    cells = [
        NotebookCell("a", "x = 1", execution_count=9),
        NotebookCell("b", "print(x)", True, execution_count=4),
    ]
    assert "different order" in choose(cells).problems[0].text
    assert choose(cells, seen=KnownBeside(KernelAnswer({}, ["x = 1"], 1, 0.0))).problems == ()


# ------------------------------------------------------------------ failed and unticked cells


def test_failed_suspected_cell_is_excluded() -> None:
    cells = [
        NotebookCell("a", "xs = [1]"),
        NotebookCell("b", "xs.append(oops)", failed=True),
        NotebookCell("c", "print(xs)", True),
    ]
    found = choose(cells)
    assert [each.included for each in found.cells] == [True, False, True]
    assert found.cells[1].why == "failed in its last run, and is not included"
    assert [each.text for each in found.problems] == [
        "it failed in its last run and is not included, though it may change `xs`; "
        "tick it to include it"
    ]


def test_failed_defining_cell_is_included_and_reported() -> None:
    cells = [NotebookCell("a", "x = 1; oops", failed=True), NotebookCell("b", "print(x)", True)]
    found = choose(cells)
    assert [each.included for each in found.cells] == [True, True]
    assert "it failed in its last run; it is included for the names that it defines" in [
        each.text for each in found.problems
    ]


def test_cell_lists_names_missing_without_it() -> None:
    cells = [
        NotebookCell("a", "x = 1"),
        NotebookCell("b", "y = x"),
        NotebookCell("c", "print(x, y)", True),
    ]
    assert [each.gives for each in choose(cells).cells] == [
        (("x", (1, 2)),),
        (("y", (2,)),),
        (),
    ]


def test_unticked_cell_is_excluded_and_missing_name_warned() -> None:
    cells = [NotebookCell("a", "x = 1", left_out=True), NotebookCell("b", "print(x)", True)]
    found = choose(cells)
    assert [each.included for each in found.cells] == [False, True]
    assert [(each.level, each.text) for each in found.problems] == [
        ("warning", "`x` is missing: cell 1 is left out by you")
    ]
    assert found.cells[0].why == "left out by you: `x` is missing in cell 2"


def test_displayed_ticks_decide_included_cells() -> None:
    cells = [NotebookCell("a", "x = 1"), NotebookCell("b", "print(x)", True)]
    found = choose(cells, seen=KnownBeside(ticked=frozenset(["b"])))
    assert [each.included for each in found.cells] == [False, True]
