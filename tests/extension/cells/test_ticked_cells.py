"""Ticks of the user: ticked cells are included, unticked cells report their consequences."""

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


def test_ticked_unneeded_cell_is_included_with_reason() -> None:
    found = {each.id: each for each in after(f={"ticked": True}).cells}
    assert (found["f"].included, found["f"].why, found["f"].selected) == (
        True,
        "ticked by you",
        True,
    )


def test_ticked_needed_cell_keeps_reason() -> None:
    found = {each.id: each for each in after(a={"ticked": True}).cells}
    assert (found["a"].why, found["a"].selected) == ("defines `rows`", False)


def test_cell_ticked_below_selection_includes_its_needs() -> None:
    cells = [*CELLS, NotebookCell("h", "late = 1"), NotebookCell("i", "print(late)", ticked=True)]
    found = {each.id: (each.included, each.why) for each in choose(cells).cells}
    assert found["h"] == (True, "defines `late`")
    assert found["i"] == (True, "ticked by you")


def test_ticked_failed_cell_is_included() -> None:
    found = {each.id: each for each in after(d={"failed": True, "ticked": True}).cells}
    assert (found["d"].included, found["d"].why) == (True, "may change `rows`")


def test_ticked_cell_is_sent_alone() -> None:
    found = after(g={"left_out": True, "selected": False}, f={"ticked": True})
    assert [each.id for each in found.cells if each.included] == ["c", "e", "f"]
    assert found.problems == ()


def test_name_of_unticked_cell_is_missing() -> None:
    why, problems = without("a")
    assert why == "left out by you: `rows` is missing in cell 4, `rows` is missing in cell 7"
    assert ("g", "`rows` is missing: cell 1 is left out by you") in problems


def test_name_replaced_by_earlier_cell_is_reported() -> None:
    assert without("c") == (
        "left out by you, though it defines `rate`",
        [("c", "it defines `rate` and is left out by you: `rate` comes from cell 2")],
    )


def test_unticked_change_is_reported() -> None:
    assert without("d") == (
        "left out by you, though it may change `rows`",
        [("d", "it may change `rows`, and is left out by you")],
    )


def test_unticked_setting_is_reported() -> None:
    why, problems = without("e")
    assert why is not None
    assert why.startswith("left out by you, though it sets ")
    assert [cell for cell, _ in problems] == ["e"]


def test_unticked_unneeded_cell_is_not_reported() -> None:
    assert without("f") == ("left out by you", [])
