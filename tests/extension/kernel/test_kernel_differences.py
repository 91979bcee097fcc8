"""The dialog tells where the kernel's names come from older texts, or from another order."""

from __future__ import annotations

from typing import Any

from benchpool.cells import KnownBeside, NotebookCell, choose
from benchpool.kernel.answer import KernelAnswer


def told(
    cells: list[str], ran: list[str], *, deleted: tuple[int, ...] = (), **more: Any
) -> list[str]:
    """Return what is told when the last cell is sent."""
    runs: dict[int, tuple[int, ...]] = more.get("runs", {})
    given = [
        NotebookCell(str(at), text, at == len(cells) - 1, runs=runs.get(at, ()))
        for at, text in enumerate(cells)
    ]
    kernel = KernelAnswer({}, ran, more.get("first", 1), 0.0)
    return [
        each.text for each in choose(given, seen=KnownBeside(kernel, frozenset(deleted))).problems
    ]


def test_nothing_is_told_where_all_ran_as_it_stands() -> None:
    assert told(["df = [1]", "df.append(2)", "print(df)"], ["df = [1]", "df.append(2)"]) == []
    assert told(["df = [1]", "print(df)"], []) == []  # a fresh kernel


def test_an_older_text_is_told_with_its_cell() -> None:
    assert told(["df = [1]", "print(df)"], ["df = [1, 2]"], runs={0: (1,)}) == [
        "`df` here was made by an older text of cell 1; the job runs cell 1 as it stands"
    ]


def test_a_deleted_cell_is_told_with_its_number() -> None:
    cells, ran = ["df = [1]", "print(df)"], ["df = [1]", "df = [7]"]
    assert told(cells, ran, deleted=(2,)) == [
        "`df` here was made by a cell that was deleted (In [2]); the job runs cell 1 as it stands"
    ]
    assert told(cells, ran, first=41) == [
        "`df` here was made by a text that stands in no cell now (In [42]); "
        "the job runs cell 1 as it stands"
    ]


def test_a_cell_further_down_that_ran_last_is_told() -> None:
    cells = [NotebookCell("a", "x = 1"), NotebookCell("b", "print(x)", True)]
    below = NotebookCell("c", "x = 2")
    kernel = KernelAnswer({}, ["x = 1", "x = 2"], 1, 0.0)
    (problem,) = choose([*cells, below], seen=KnownBeside(kernel)).problems
    assert problem.text == (
        "`x` here was made by cell 3, which ran last; the job runs cell 1 as it stands"
    )
    assert problem.cell == "a"


def test_what_changed_a_name_and_stands_nowhere_is_told() -> None:
    assert told(["df = [1]", "print(df)"], ["df = [1]", "df.append(2)"]) == [
        "`df` here may have been changed by a text that stands in no cell now (In [2]); "
        "in the job it is not"
    ]


def test_another_order_is_told_with_both_cells() -> None:
    cells = ["x = 1", "y = 2", "print(x, y)"]
    assert told(cells, ["y = 2", "x = 1"]) == [
        "here cell 2 ran before cell 1; the job runs them from top to bottom"
    ]


def test_counts_of_another_session_tell_no_order() -> None:
    cells = [
        NotebookCell("a", "x = 1", execution_count=9),
        NotebookCell("b", "print(x)", True, execution_count=4),
    ]
    assert "another order" in choose(cells).problems[0].text
    assert choose(cells, seen=KnownBeside(KernelAnswer({}, ["x = 1"], 1, 0.0))).problems == ()


# ------------------------------------------------------------------ failed, and unticked


def test_a_cell_that_failed_and_is_only_suspected_stays_out() -> None:
    cells = [
        NotebookCell("a", "xs = [1]"),
        NotebookCell("b", "xs.append(oops)", failed=True),
        NotebookCell("c", "print(xs)", True),
    ]
    found = choose(cells)
    assert [each.included for each in found.cells] == [True, False, True]
    assert found.cells[1].why == "failed when it last ran, and stays out"
    assert [each.text for each in found.problems] == [
        "it failed when it last ran and stays out, though it may change `xs`; "
        "tick it to take it along"
    ]


def test_a_cell_that_failed_and_defines_what_is_needed_goes_along_and_is_told() -> None:
    cells = [NotebookCell("a", "x = 1; oops", failed=True), NotebookCell("b", "print(x)", True)]
    found = choose(cells)
    assert [each.included for each in found.cells] == [True, True]
    assert "it failed when it last ran; it goes along for what it defines" in [
        each.text for each in found.problems
    ]


def test_a_cell_says_what_would_be_missing_without_it_and_for_whom() -> None:
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


def test_an_unticked_cell_stays_out_and_what_is_missing_is_told_but_can_be_sent() -> None:
    cells = [NotebookCell("a", "x = 1", left_out=True), NotebookCell("b", "print(x)", True)]
    found = choose(cells)
    assert [each.included for each in found.cells] == [False, True]
    assert [(each.level, each.text) for each in found.problems] == [
        ("warning", "`x` is missing: cell 1 is left out by you")
    ]
    assert found.cells[0].why == "left out by you: `x` is missing in cell 2"


def test_what_was_shown_as_ticked_is_what_goes_along() -> None:
    cells = [NotebookCell("a", "x = 1"), NotebookCell("b", "print(x)", True)]
    found = choose(cells, seen=KnownBeside(ticked=frozenset(["b"])))
    assert [each.included for each in found.cells] == [False, True]
