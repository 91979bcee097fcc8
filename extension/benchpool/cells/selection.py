"""Selection of the cells that a job runs: those chosen, the cells they need, and each reason.

The order is the visible order, from the top. From each name that a cell needs, the search goes back
to the cell that surely defines it, with every cell in between that may define or change it. Cells
with a setting for all later code (seeds, environment, plot settings) are always included. Cells
below the last selected one never are. An extra cell costs seconds, a missing one a night in the
queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchpool.cells import (
    cell_problems,
    evidence,
    files,
    kernel_differences,
    known,
    left_names,
    magics,
    put_in_names,
    suspicions,
    unticked,
)
from benchpool.cells.garbage import collector_paused
from benchpool.cells.notebook_cells import (
    CellChoice,
    CellSelection,
    KnownBeside,
    NotebookCell,
    Problem,
)
from benchpool.cells.search import TICKED, Search, def_uses_of

_NOTHING = KnownBeside()


@collector_paused()
def choose(
    cells: Sequence[NotebookCell],
    given: frozenset[str] = frozenset(),
    seen: KnownBeside = _NOTHING,
) -> CellSelection:
    """Choose the cells that a job needs for the selected ones.

    Args:
        cells: All cells of the notebook.
        given: Names whose values are sent: the cells that made them stay out.
        seen: With the kernel's answer, fewer cells are suspected and more problems are reported.

    >>> done = choose([
    ...     NotebookCell("a", "import math"),
    ...     NotebookCell("b", "unused = 1"),
    ...     NotebookCell("c", "print(math.pi)", selected=True),
    ... ])
    >>> [(each.id, each.why) for each in done.cells if each.included]
    [('a', 'imports `math`'), ('c', 'selected')]
    """
    search, history = search_of(cells, seen)
    made_again: dict[str, str] = {}
    while useless := _run(search, cells, given - made_again.keys()):
        made_again |= useless
        search = search.fresh_copy()
    whole = search
    if any(cell.stays_out for cell in cells):
        whole = _search_among(cells, _code(cells), seen, history)
        _run(whole, cells, given)
    by_hand = [n for n in search.reads if cells[n].selected or cells[n].ticked]
    problems = [*cell_problems.of_selection(cells, by_hand, search, by_count=history is None)]
    problems += [*cell_problems.of_cells(cells, search), *_failed(cells, search)]
    problems += files.problems(cells, search)
    names = {} if seen.kernel is None else seen.kernel.names
    problems += suspicions.problems(cells, search, names)
    problems += put_in_names.problems(cells, search, names)
    problems += unticked.problems(cells, search, whole)
    problems += [
        _made_again(name, does, cells[search.last].id) for name, does in made_again.items()
    ]
    if history is not None:
        problems += kernel_differences.differences(cells, search, history, seen.deleted)
    ordered = tuple(sorted(problems, key=lambda each: each.level != "error"))
    whys = {
        number: unticked.reason(cell, number, search, whole)
        for number, cell in enumerate(cells)
        if cell.stays_out and number in whole.reads
    }
    whys |= search.why
    chosen = tuple(_choice(cell, number, search, seen, whys) for number, cell in enumerate(cells))
    return CellSelection(chosen, ordered, left_names.of(by_hand, search.reads, search.changes))


def search_of(
    cells: Sequence[NotebookCell], seen: KnownBeside
) -> tuple[Search, evidence.KernelHistory | None]:
    """Return the search from the selected cells before it runs, and what the kernel ran."""
    kernel = seen.kernel
    history = None if kernel is None else evidence.KernelHistory(kernel.history, kernel.first)
    kept = [number for number in _code(cells) if cells[number].stays_out is None]
    return _search_among(cells, kept, seen, history), history


def _code(cells: Sequence[NotebookCell]) -> list[int]:
    return [number for number, cell in enumerate(cells) if cell.cell_type == "code"]


def _search_among(
    cells: Sequence[NotebookCell],
    code: Sequence[int],
    seen: KnownBeside,
    history: evidence.KernelHistory | None,
) -> Search:
    by_hand = [number for number in code if cells[number].selected or cells[number].ticked]
    reads = {number: magics.read(cells[number].source) for number in code}
    search = Search(reads, max(by_hand, default=-1))
    if history is not None and seen.kernel is not None:
        texts = [cell.source for cell in cells]
        known_now = evidence.decide(search, texts, history, seen.kernel.names)
        search = Search(
            reads,
            search.last,
            search.changes.fresh_copy(known_now.fixed, known_now.apart),
            search.def_uses,
        )
    search.failed = {number for number in code if cells[number].failed} - {*by_hand}
    return search


def _run(search: Search, cells: Sequence[NotebookCell], given: frozenset[str]) -> dict[str, str]:
    """Run the search; return the sent names that are of no use, and what a cell does with each."""
    selected = [number for number in search.reads if cells[number].selected]
    ticked = [number for number in search.reads if cells[number].ticked]
    search.run(selected, given, ticked)
    while needed := [*files.needed(search)]:
        for number, why in needed:
            search.include(number, why)
        search.follow(())
    found = dict.fromkeys(sorted(search.overwritten(selected)), "may set or change it again")
    return found | dict.fromkeys(sorted(search.made_again), "uses its value before its last change")


def _choice(
    cell: NotebookCell,
    number: int,
    search: Search,
    seen: KnownBeside,
    whys: Mapping[int, str],
) -> CellChoice:
    why = whys.get(number)
    if why is None and number in search.stays_out:
        why = "failed in its last run, and is not included"
    read = search.reads.get(number)
    gives = search.gives.get(number, {})
    return CellChoice(
        cell.id,
        number,
        _goes_along(cell, number, search) if seen.ticked is None else cell.id in seen.ticked,
        cell.selected or why == TICKED,
        why,
        read.run if read is not None else cell.source,
        tuple((name, tuple(sorted(gives[name]))) for name in sorted(gives)),
        cell.is_skipped,
    )


def _goes_along(cell: NotebookCell, number: int, search: Search) -> bool:
    """Return whether a cell is included. A selected cell is, even if its tag skips it."""
    is_kept = cell.is_skipped and (cell.selected or cell.ticked) and not cell.left_out
    return number in search.why or is_kept


def _made_again(name: str, does: str, cell: str) -> Problem:
    text = (
        f"the value of `{name}` is not sent: an included cell {does}, so the cells that define it "
        "run again"
    )
    return Problem("warning", text, cell)


def _failed(cells: Sequence[NotebookCell], search: Search) -> Iterator[Problem]:
    for number in sorted(search.failed):
        if number in search.why:
            text = "it failed in its last run; it is included for the names that it defines"
            yield Problem("warning", text, cells[number].id)
        elif number in search.stays_out:
            text = (
                "it failed in its last run and is not included, though it may change "
                f"`{search.stays_out[number]}`; tick it to include it"
            )
            yield Problem("warning", text, cells[number].id)


def names_of(cells: Sequence[NotebookCell]) -> frozenset[str]:
    """Return the names that cells bind or use, except those that every kernel has.

    >>> sorted(names_of([NotebookCell("a", "y = x + 1")]))
    ['x', 'y']
    """
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    reads = {number: magics.read(source) for number, source in enumerate(code)}
    found = [each.possible_definitions | each.uses.keys() for each in def_uses_of(reads).values()]
    return frozenset[str]().union(*found) - known.PROVIDED
