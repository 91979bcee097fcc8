"""Names that IPython would substitute in a line, but that the job does not define."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from benchpool.cells import known
from benchpool.cells.def_use import DefUse
from benchpool.cells.notebook_cells import NotebookCell, Problem
from benchpool.cells.search import Search


def problems(
    cells: Sequence[NotebookCell], search: Search, kernel: Collection[str]
) -> Iterator[Problem]:
    """Yield a problem for each ``{x}`` and ``$x`` that reaches the shell of the job unchanged.

    ``$HOME`` is a variable of the shell and no problem. ``{x}`` is a problem. So is ``$x`` if the
    kernel has such a name or a later cell defines it.

    Args:
        cells: All cells.
        search: The cells that are included.
        kernel: Names that the kernel holds; empty if it was not queried.
    """
    below = {name for made in search.def_uses.values() for name in made.possible_definitions}
    provided = known.PROVIDED | search.set_inside | search.given.keys()
    for number in sorted(search.why.keys() & search.def_uses.keys()):
        read, def_use = search.reads[number], search.def_uses[number]
        used = _used(def_use)
        for name in sorted((read.put_in & used.keys()) - provided):
            is_made = name in def_use.possible_definitions or search.changes.bound(name, number)
            if is_made or (number, name) in search.missing:
                continue
            if name in read.braced or name in kernel or name in below:
                field = f"{{{name}}}" if name in read.braced else f"${name}"
                text = (
                    f"`{name}` is defined in no cell above, so the job runs the line with "
                    f"`{field}` unchanged; define `{name}` in a cell above"
                )
                yield Problem("warning", text, cells[number].id, used[name])


def _used(def_use: DefUse) -> dict[str, int]:
    inner = [each for found in def_use.functions.values() for each in found]
    lines = {name: line for each in inner for name, line in each.uses.items()}
    return lines | def_use.uses
