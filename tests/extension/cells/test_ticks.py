"""What the user ticks goes along, and what is unticked says what is otherwise without it."""

from __future__ import annotations

import dataclasses

from benchpool.cells import CellSelection, NotebookCell, choose

CELLS = [
    NotebookCell("a", "rows = [1]"),
    NotebookCell("b", "rate = 1"),
    NotebookCell("c", "rate = 2"),
    NotebookCell("d", "rows.append(rate)"),
    NotebookCell("e", "import os\nos.environ['A'] = '1'"),
    NotebookCell("f", "spare = rate"),
    NotebookCell("g", "print(rows, rate)", selected=True),
]


def after(**changes: dict[str, bool]) -> CellSelection:
    return choose(
        [dataclasses.replace(cell, **changes.get(cell.id, {})) for cell in CELLS]  # type: ignore[arg-type]
    )


def without(cell: str) -> tuple[str | None, list[tuple[str | None, str]]]:
    found = after(**{cell: {"left_out": True}})
    why = {each.id: each.why for each in found.cells}[cell]
    return why, [(each.cell, each.text) for each in found.problems]


def test_a_cell_that_nothing_needs_goes_along_by_a_tick_and_says_so() -> None:
    found = {each.id: each for each in after(f={"ticked": True}).cells}
    assert (found["f"].included, found["f"].why, found["f"].selected) == (
        True,
        "ticked by you",
        True,
    )


def test_a_cell_that_is_needed_keeps_its_reason_when_it_is_ticked_again() -> None:
    found = {each.id: each for each in after(a={"ticked": True}).cells}
    assert (found["a"].why, found["a"].selected) == ("defines `rows`", False)


def test_a_tick_below_the_selection_takes_along_what_the_cell_needs() -> None:
    cells = [*CELLS, NotebookCell("h", "late = 1"), NotebookCell("i", "print(late)", ticked=True)]
    found = {each.id: (each.included, each.why) for each in choose(cells).cells}
    assert found["h"] == (True, "defines `late`")
    assert found["i"] == (True, "ticked by you")


def test_a_failed_cell_goes_along_by_a_tick() -> None:
    found = {each.id: each for each in after(d={"failed": True, "ticked": True}).cells}
    assert (found["d"].included, found["d"].why) == (True, "may change `rows`")


def test_a_ticked_cell_alone_can_be_sent() -> None:
    found = after(g={"left_out": True, "selected": False}, f={"ticked": True})
    assert [each.id for each in found.cells if each.included] == ["c", "e", "f"]
    assert found.problems == ()


def test_a_name_that_nobody_gives_without_a_cell_is_missing() -> None:
    why, said = without("a")
    assert why == "left out by you: `rows` is missing in cell 4, `rows` is missing in cell 7"
    assert ("g", "`rows` is missing: cell 1 is left out by you") in said


def test_a_name_that_an_earlier_cell_gives_too_is_told() -> None:
    assert without("c") == (
        "left out by you, though it defines `rate`",
        [("c", "it defines `rate` and is left out by you: `rate` is that of cell 2")],
    )


def test_a_change_that_is_left_out_is_told() -> None:
    assert without("d") == (
        "left out by you, though it may change `rows`",
        [("d", "it may change `rows`, and is left out by you")],
    )


def test_a_setting_that_is_left_out_is_told() -> None:
    why, said = without("e")
    assert why is not None
    assert why.startswith("left out by you, though it sets ")
    assert [cell for cell, _ in said] == ["e"]


def test_a_cell_that_nothing_needs_is_left_out_without_a_word() -> None:
    assert without("f") == ("left out by you", [])
