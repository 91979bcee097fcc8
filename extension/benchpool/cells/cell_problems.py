"""Problems of the included cells, as far as their text shows."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Sequence

from benchpool.cells import known
from benchpool.cells.left_out import Level
from benchpool.cells.notebook_cells import NotebookCell, Problem
from benchpool.cells.search import Search, names_bound, words_used


def of_cells(cells: Sequence[NotebookCell], search: Search) -> Iterator[Problem]:
    """Yield the problems of the chosen cells."""
    for number in sorted(search.why):
        read, def_use = search.reads[number], search.def_uses.get(number)
        for note in read.notes:
            yield Problem(note.level, note.text, cells[number].id, note.line)
        if def_use is not None and def_use.asks is not None:
            text = "asks for input, which a job cannot get: set the value in the code"
            yield Problem("error", text, cells[number].id, def_use.asks)
        for call in def_use.calls if def_use is not None else ():
            if call.chain[-2:] == ("events", "register"):
                text = "the registered callback runs for fewer cells in the job"
                yield Problem("warning", text, cells[number].id, call.line)
        for name, line in sorted(def_use.uses.items()) if def_use is not None else ():
            if known.is_history(name) and (number, name) not in search.missing:
                text = f"`{name}` is the history of this session; a job has its own"
                yield Problem("warning", text, cells[number].id, line)
    for (number, name), line in sorted(search.missing.items()):
        yield _missing(cells, search, number, name, line)
    left_out = sorted(search.random.left_out - search.why.keys())
    if left_out:
        text = (
            f"{_cells(left_out)} random numbers after the seed too, but not in the job: "
            "the job draws different numbers than the notebook"
        )
        yield Problem("warning", text, cells[max(search.why)].id)
    for number, name in sorted(search.random.may_draw.items()):
        if number not in search.why:
            text = (
                f"cell {number + 1} calls `{name}`, which may draw random numbers after the seed, "
                "and is not included: tick it to include it"
            )
            yield Problem("warning", text, cells[number].id)


def _missing(
    cells: Sequence[NotebookCell], search: Search, number: int, name: str, line: int
) -> Problem:
    here = cells[number].id
    if known.is_earlier_output(name):
        text = f"`{name}` is the output of an earlier cell; in a job it may differ"
        return Problem("warning", text, here, line)
    unknown = [each.defines_unknown for each in search.def_uses.values() if each.defines_unknown]
    if unknown:
        text = f"`{name}` is defined in no cell; it must come from `{unknown[0]}`"
        return Problem("warning", text, here, line)
    opaque = [each for each, read in search.reads.items() if read.opaque and each in search.why]
    level: Level = "warning" if opaque or not _sure(search, number, name) else "error"
    out = [
        (str(each + 1), cell)
        for each, cell in enumerate(cells)
        if cell.stays_out is not None and name in names_bound(cell.source)
    ]
    for is_unticked in (True, False):
        numbers = [each for each, cell in out if cell.left_out is is_unticked]
        if numbers:
            why = next(cell.stays_out for _, cell in out if cell.left_out is is_unticked)
            remedy = "" if is_unticked else "; remove the tag to run it"
            text = f"`{name}` is missing: cell {', '.join(numbers)} is {why}{remedy}"
            return Problem("warning" if is_unticked else level, text, here, line)
    later = [each for each, made in search.def_uses.items() if name in made.possible_definitions]
    if later:
        order = "below the selection" if min(later) > search.last else "further down"
        text = f"`{name}` is used before the cell that defines it, which is {order}"
        return Problem(level, text, here, line)
    text = f"`{name}` is defined in no cell of this notebook{_similar(search, name)}"
    return Problem(level, text, here, line)


def _sure(search: Search, number: int, name: str) -> bool:
    """Return whether a name is surely needed, by the cell itself or by a called function."""
    def_use = search.def_uses[number]
    if name in def_use.uses:
        return True
    owners = {
        owner.lstrip(".")
        for owner, found in def_use.functions.items()
        if any(name in each.uses for each in found)
    }
    called = {word for each in search.why for word in _words_of(search, each)}
    return not owners.isdisjoint(called)


def _words_of(search: Search, number: int) -> set[str]:
    def_use = search.def_uses.get(number)
    return set() if def_use is None else words_used(def_use)


def _similar(search: Search, name: str) -> str:
    names = {each for made in search.def_uses.values() for each in made.possible_definitions}
    close = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.75)
    return f"; did you mean `{close[0]}`?" if close else ""


def _cells(numbers: list[int]) -> str:
    listed = ", ".join(str(number + 1) for number in numbers)
    return f"cell {listed} draws" if len(numbers) == 1 else f"cells {listed} draw"


def of_selection(
    cells: Sequence[NotebookCell], selected: list[int], search: Search, *, by_count: bool
) -> Iterator[Problem]:
    """Yield a problem if nothing is selected, or if the kernel ran the cells in another order."""
    if not any(cells[number].source.strip() for number in selected):
        yield Problem("error", "no cell with code is selected: select the cells to run")
        return
    chosen = sorted(search.why) if by_count else []
    ran = [cells[number] for number in chosen if cells[number].execution_count]
    for before, after in itertools.pairwise(ran):
        if (before.execution_count or 0) > (after.execution_count or 0):
            text = "here the cells ran in a different order; the job runs them from top to bottom"
            yield Problem("warning", text, after.id)
            return
