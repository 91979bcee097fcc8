"""Excluded cells that may still matter: reported, since neither case can be proved.

The cells' text shows functions that an object keeps and may call. The kernel shows two names that
share memory or parts where the text shows no tie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchpool.cells.alias_graph import Change
from benchpool.cells.notebook_cells import NotebookCell, Problem
from benchpool.cells.search import Search
from benchpool.kernel.answer import NameFacts

_TICK = "and is not included: tick it to include it"


def problems(
    cells: Sequence[NotebookCell], search: Search, names: Mapping[str, NameFacts]
) -> Iterator[Problem]:
    """Yield each excluded cell that may change an included one, once.

    Args:
        cells: All cells.
        search: The cells that are included.
        names: What the kernel's names hold; empty if it was not queried.
    """
    given = {name: number for number in sorted(search.gives) for name in search.gives[number]}
    given = {k: v for k, v in given.items() if k not in search.changes.code.imports}
    for number in search.above:
        if number in search.why or number in search.stays_out:
            continue
        before = {name for name, giver in given.items() if giver < number}
        suspicion = _by_function(search, number, before) or _by_kernel(
            search, number, before, names
        )
        if suspicion is not None:
            yield Problem("warning", f"cell {number + 1} {suspicion}, {_TICK}", cells[number].id)


def _by_function(search: Search, number: int, before: set[str]) -> str | None:
    """Return what a function changes that is kept by an object the cell uses, or None."""
    for function, changed in search.changes.kept_to_be_called(number):
        hit = sorted(before & changed)
        if hit:
            return f"uses an object that keeps `{function}`, which may change `{hit[0]}`"
    return None


def _by_kernel(
    search: Search, number: int, before: set[str], names: Mapping[str, NameFacts]
) -> str | None:
    """Return what shares data in the kernel with an object that the cell changes, or None."""
    code = search.changes.code
    for changed, how in sorted(search.changes.effects[number].changes.items()):
        facts = names.get(changed)
        if facts is None or not facts.is_walked or changed in code.functions:
            continue
        for name in sorted(before & {*facts.shares} - {changed} - code.functions.keys()):
            same = names[name].identity == facts.identity if name in names else False
            deep = how is not Change.ITEM or same
            if deep and _is_held_now(search, name) and not search.changes.tied(changed, name):
                return f"may change `{changed}`, which shares data with `{name}` in the kernel"
    return None


def _is_held_now(search: Search, name: str) -> bool:
    """Return whether the kernel's name holds the included object, as far as the text shows."""
    makers = [at for at, made in search.def_uses.items() if name in made.possible_definitions]
    return bool(makers) and max(makers) in search.why
