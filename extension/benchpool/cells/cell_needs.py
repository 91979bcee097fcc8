"""Names that each cell of a selection needs, and the cells that make each of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from benchpool.cells import magics
from benchpool.cells.notebook_cells import KnownBeside, NotebookCell
from benchpool.cells.search import Search, def_uses_of
from benchpool.cells.selection import search_of

_NOTHING = KnownBeside()


@dataclass(frozen=True, slots=True)
class CellNeeds:
    """Cells that a selection runs and the reasons, by position in the notebook.

    Attributes:
        forced: Cells that run whatever is sent: the selected cells, and settings.
        needs: For each cell that runs, its names and the cells that make or change each.
        last_touched: For each name, the last cell above the selection's end that makes or changes
            it, except the selected ones; -1 if there is none.
        busy: Names that selected cells, or cells below them, make or change. For these the kernel's
            values are not the ones that the job begins with.
    """

    forced: frozenset[int]
    needs: Mapping[int, Mapping[str, frozenset[int]]]
    last_touched: Mapping[str, int]
    busy: frozenset[str]

    def makers(self, name: str) -> frozenset[int]:
        """Return the cells that make or change a name for any cell that needs it."""
        none = frozenset[int]()
        return none.union(*(names.get(name, none) for names in self.needs.values()))


def of(cells: Sequence[NotebookCell], seen: KnownBeside = _NOTHING) -> CellNeeds:
    """Return the needs of a selection, as ``choose`` finds them.

    >>> found = of([
    ...     NotebookCell("a", "x = load()"),
    ...     NotebookCell("b", "train(x)", selected=True),
    ... ])
    >>> found.needs[1]["x"], found.last_touched["x"]
    (frozenset({0}), 0)
    """
    search, _ = search_of(cells, seen)
    selected = [n for n in search.reads if cells[n].selected or cells[n].ticked]
    last = search.last
    search.run(selected)
    needs: dict[int, Mapping[str, frozenset[int]]] = {}
    forced = set(selected)
    for number in search.why:
        found = _OneCell(search, number).found
        forced |= found.pop("", set())
        needs[number] = {name: frozenset(each) for name, each in found.items()}
    settings = {n for n in search.why if n <= last and search.changes.effects[n].setting}
    names = {name for each in needs.values() for name in each}
    touched = {name: search.changes.last_touched(name, selected) for name in names}
    busy = _changed(search, selected) | _below(search.reads, last)
    return CellNeeds(frozenset(forced | settings), needs, touched, busy)


class _OneCell(Search):
    """Search that follows one cell and notes which cells each of its names brings along."""

    def __init__(self, like: Search, number: int) -> None:
        super().__init__(like.reads, like.last, like.changes.fresh_copy(), like.def_uses)
        self.failed = like.failed
        self.found: dict[str, set[int]] = {}
        self._names: list[str] = []
        self.why[number] = "itself"
        self._waiting = [number]
        self.follow({number} if like.why.get(number) == "selected" else ())

    def include(self, number: int, why: str) -> None:
        """Note the cell without following its own needs."""
        if number not in self.why:
            self.found.setdefault(self._names[-1] if self._names else "", set()).add(number)

    def _need(
        self,
        name: str,
        at: int,
        blamed: int,
        line: int,
        *,
        later: bool = False,
        bound: frozenset[str] | None = None,
        perhaps: bool = False,
    ) -> None:
        if not self._names:
            self.changes = self.changes.fresh_copy()
        self._names.append(name)
        super()._need(name, at, blamed, line, later=later, bound=bound, perhaps=perhaps)
        self._names.pop()


def _changed(search: Search, selected: Collection[int]) -> frozenset[str]:
    effects = [search.changes.effects[n].changes.keys() for n in selected if n in search.def_uses]
    made = [search.def_uses[n].possible_definitions for n in selected if n in search.def_uses]
    return frozenset[str]().union(*effects, *made)


def _below(reads: Mapping[int, magics.ParsedCell], last: int) -> frozenset[str]:
    below = def_uses_of({n: read for n, read in reads.items() if n > last}).values()
    found = [each.possible_definitions | each.changes.keys() for each in below]
    called = [{name for call in each.calls for name in call.chain[:1]} for each in below]
    return frozenset[str]().union(*found, *called)
