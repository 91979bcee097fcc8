"""The dialog analyses the same cells several times: each answer stands for itself."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from benchpool.cells import CellSelection, KnownBeside, NotebookCell, choose
from benchpool.kernel.answer import KernelAnswer, NameFacts

CELLS = [
    NotebookCell("0", "import mine\nrate = 3\nxs = []"),
    NotebookCell("1", "xs.append(rate)"),
    NotebookCell("2", "mine.show(rate)"),
    NotebookCell("3", "ys = [1]"),
    NotebookCell("4", "print(xs)", selected=True),
]


def included(found: CellSelection) -> list[int]:
    return [each.index for each in found.cells if each.included]


def test_same_cells_give_same_selection_again() -> None:
    first = choose(CELLS)
    assert included(first) == [0, 1, 4]
    assert choose(CELLS) == first


def test_tick_counts_for_its_analysis_alone() -> None:
    ticked = [*CELLS[:3], replace(CELLS[3], ticked=True), CELLS[4]]
    assert included(choose(ticked)) == [0, 1, 3, 4]
    assert included(choose(CELLS)) == [0, 1, 4]


def test_kernel_answer_counts_for_its_analysis_alone() -> None:
    cells = [*CELLS[:4], replace(CELLS[4], source="print(rate)")]
    number = NameFacts(1, "builtins.int", True, True, 28, None, None, None, [])
    ran = [cell.source for cell in cells[:4]]
    kernel = KnownBeside(KernelAnswer({"rate": number}, ran, 1, 0.0))
    for _ in range(2):
        assert included(choose(cells)) == [0, 2, 4]
        assert included(choose(cells, seen=kernel)) == [0, 4]


@pytest.mark.parametrize("is_enabled", [True, False])
def test_garbage_collector_is_left_as_it_was(is_enabled: bool) -> None:
    before = gc.isenabled()
    (gc.enable if is_enabled else gc.disable)()
    try:
        choose(CELLS)
        assert gc.isenabled() is is_enabled
    finally:
        (gc.enable if before else gc.disable)()
