"""Effects of the excluded cells on the included ones, if they had run: unticked or tagged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchpool.cells.notebook_cells import NotebookCell, Problem
from benchpool.cells.search import Search, names_bound


def reason(cell: NotebookCell, number: int, search: Search, whole: Search) -> str:
    """Return what is missing without an excluded cell.

    Args:
        cell: The cell.
        number: Its position.
        search: The cells included without the excluded ones.
        whole: The cells that would be included with them.
    """
    out = cell.stays_out or ""
    lost = sorted((name, at) for at, name in search.missing if name in names_bound(cell.source))
    missing = [f"`{name}` is missing in cell {at + 1}" for name, at in lost]
    if missing:
        return f"{out}: {', '.join(missing)}"
    why = whole.why.get(number)
    return out if why is None or cell.selected else f"{out}, though it {why}"


def problems(cells: Sequence[NotebookCell], search: Search, whole: Search) -> Iterator[Problem]:
    """Yield what differs without the excluded cells, except missing names."""
    missing = {name for _, name in search.missing}
    for number, why in sorted(whole.why.items()):
        cell = cells[number]
        if cell.stays_out is None:
            continue
        if cell.selected or cell.ticked:
            if not cell.left_out:
                text = f"it is {cell.stays_out}; remove the tag to run it"
                yield Problem("info", text, cell.id)
            continue
        given = sorted(whole.gives.get(number, {}))
        others = [(name, _instead(search, name)) for name in given if name not in missing]
        for name, instead in others:
            if instead is not None:
                text = f"it defines `{name}` and is {cell.stays_out}: `{name}` comes from cell"
                yield Problem("warning", f"{text} {instead + 1}", cell.id)
        if not given:
            yield Problem("warning", f"it {why}, and is {cell.stays_out}", cell.id)


def _instead(search: Search, name: str) -> int | None:
    return max((number for number, names in search.gives.items() if name in names), default=None)
