"""Cells by their source, and the cells of them that a job runs."""

from __future__ import annotations

from benchpool.cells import CellSelection, NotebookCell, choose


def chosen(*sources: str, select: int | tuple[int, ...] = -1) -> CellSelection:
    """Choose among cells by source; the last one is selected by default."""
    wanted = (select,) if isinstance(select, int) else select
    numbers = {number % len(sources) for number in wanted}
    return choose(
        [NotebookCell(f"c{n}", text, selected=n in numbers) for n, text in enumerate(sources)],
    )


def included(selection: CellSelection) -> list[int]:
    """Return the numbers of the included cells."""
    return [each.index for each in selection.cells if each.included]
