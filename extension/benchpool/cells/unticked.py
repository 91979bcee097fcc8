"""What the cells that the user has unticked would have done for those that go along."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchpool.cells.notebook_cells import NotebookCell, Problem
from benchpool.cells.search import Search, names_bound

LEFT_OUT = "left out by you"


def reason(cell: NotebookCell, number: int, search: Search, whole: Search) -> str:
    """Say of an unticked cell what is missing without it.

    Args:
        cell: The cell.
        number: Its position.
        search: What goes along without the unticked cells.
        whole: What would go along with them.
    """
    lost = sorted((name, at) for at, name in search.missing if name in names_bound(cell.source))
    missing = [f"`{name}` is missing in cell {at + 1}" for name, at in lost]
    if missing:
        return f"{LEFT_OUT}: {', '.join(missing)}"
    return f"{LEFT_OUT}, though it {whole.why[number]}" if number in whole.why else LEFT_OUT


def problems(cells: Sequence[NotebookCell], search: Search, whole: Search) -> Iterator[Problem]:
    """Yield what is otherwise without the unticked cells; names that are missing are told apart."""
    missing = {name for _, name in search.missing}
    for number, why in sorted(whole.why.items()):
        if not cells[number].left_out:
            continue
        given = sorted(whole.gives.get(number, {}))
        others = [(name, _instead(search, name)) for name in given if name not in missing]
        for name, instead in others:
            if instead is not None:
                text = f"it defines `{name}` and is left out by you: `{name}` is that of cell"
                yield Problem("warning", f"{text} {instead + 1}", cells[number].id)
        if not given:
            yield Problem("warning", f"it {why}, and is {LEFT_OUT}", cells[number].id)


def _instead(search: Search, name: str) -> int | None:
    return max((number for number, names in search.gives.items() if name in names), default=None)
