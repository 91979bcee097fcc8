"""Names that IPython would put into a line in the notebook, and that the job does not define."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from benchpool.cells import known
from benchpool.cells.def_use import DefUse
from benchpool.cells.notebook_cells import NotebookCell, Problem
from benchpool.cells.search import Search


def problems(
    cells: Sequence[NotebookCell], search: Search, kernel: Collection[str]
) -> Iterator[Problem]:
    """Yield ``{x}`` and ``$x`` that reach the shell of the job as they stand.

    ``$HOME`` is the shell's own, and no problem. ``{x}`` is one, and ``$x`` where the kernel has
    such a name or a cell further down defines it.

    Args:
        cells: All cells.
        search: Those that go along.
        kernel: Names that the kernel holds; nothing where it was not asked.
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
