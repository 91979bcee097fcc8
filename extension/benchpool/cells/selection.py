"""Which cells a job runs so that the selected ones find what they need, and why each.

Visible order, from above: from each name that a cell needs, back to the cell that surely defines
it, with every cell in between that perhaps defines it or may change it. Cells that set something
for all that follows (seeds, environment, plot settings) always go along. Cells below the last
selected one never do. An extra cell costs seconds, a missing one a night in the queue.
"""

from __future__ import annotations

import ast
import bisect
import difflib
import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchpool.cells import known, magics, scope_reader
from benchpool.cells.call_effects import Effect, Effects, alias_sets
from benchpool.cells.def_use import DefUse
from benchpool.cells.magics import Level, ParsedCell


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """A cell as it stands in the notebook; ``execution_count`` is None where it never ran."""

    id: str
    source: str
    selected: bool = False
    cell_type: str = "code"
    execution_count: int | None = None


@dataclass(frozen=True, slots=True)
class CellChoice:
    """What happens to one cell. ``run`` is what the job runs of it."""

    id: str
    index: int
    included: bool
    selected: bool
    why: str | None
    run: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that would fail, or may; ``cell`` is an id, ``line`` counts from 1."""

    level: Level
    text: str
    cell: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class CellSelection:
    """The answer: one choice for each cell, and the problems, errors first."""

    cells: tuple[CellChoice, ...]
    problems: tuple[Problem, ...]


def choose(cells: Sequence[NotebookCell]) -> CellSelection:
    """Choose the cells that a job needs for the selected ones.

    >>> done = choose([
    ...     NotebookCell("a", "import math"),
    ...     NotebookCell("b", "unused = 1"),
    ...     NotebookCell("c", "print(math.pi)", selected=True),
    ... ])
    >>> [(each.id, each.why) for each in done.cells if each.included]
    [('a', 'imports `math`'), ('c', 'selected')]
    """
    code = [number for number, cell in enumerate(cells) if cell.cell_type == "code"]
    selected = [number for number in code if cells[number].selected]
    last = max(selected, default=-1)
    reads = {number: magics.read(cells[number].source) for number in code}
    search = _Search(reads, last)
    for number in selected:
        search.include(number, "selected")
    search.run()
    problems = [*_general(cells, selected, search), *search.problems(cells)]
    chosen = tuple(
        CellChoice(
            cell.id,
            number,
            number in search.why,
            cell.selected,
            search.why.get(number),
            reads[number].run if number in reads else cell.source,
        )
        for number, cell in enumerate(cells)
    )
    return CellSelection(chosen, tuple(sorted(problems, key=lambda each: each.level != "error")))


class _Search:
    """Goes back from what is needed to who gives it. Numbers are positions in the notebook."""

    def __init__(self, reads: dict[int, ParsedCell], last: int) -> None:
        self.reads = reads
        self.last = last
        self.def_uses = {
            number: _def_use(read.tree)
            for number, read in reads.items()
            if read.tree is not None and not read.sends
        }
        self.above = [number for number in self.def_uses if number <= last]
        known_def_uses = [self.def_uses[number] for number in self.above]
        self.effects = Effects(known_def_uses)
        self.alias_sets = alias_sets(known_def_uses, self.effects)
        self.set_inside = {
            name for each in self.effects.functions for name in self.effects.outer_of(each)
        }
        self.changes = {number: self._changes(self.def_uses[number]) for number in self.above}
        self.definers: dict[str, list[int]] = {}
        self.changers: dict[str, list[int]] = {}
        for number in self.above:
            for name in self.def_uses[number].possible_definitions:
                self.definers.setdefault(name, []).append(number)
            for name in self.changes[number].names:
                self.changers.setdefault(name, []).append(number)
        self._changers_of: dict[frozenset[str], list[int]] = {}
        self.why: dict[int, str] = {}
        self.missing: dict[tuple[int, str], int] = {}
        self._asked: set[tuple[str, int]] = set()
        self._waiting: list[int] = []

    def _changes(self, def_use: DefUse) -> Effect:
        """Return what a cell changes, by functions too that an object holds or is given."""
        effect = self.effects.of_cell(def_use)
        for call in def_use.calls if self.set_inside else ():
            mentioned = {call.chain[0]}.union(*call.arguments, *[held for _, held in call.keywords])
            for function in {
                each for name in mentioned for each in self.alias_sets.functions_of(name)
            }:
                effect.names |= self.effects.outer_of(function)
        return effect

    def include(self, number: int, why: str) -> None:
        """Take a cell along; its own needs are followed by ``run``."""
        if number not in self.why:
            self.why[number] = why
            self._waiting.append(number)

    def run(self) -> None:
        """Follow all needs."""
        for number in self.above:
            setting = self.changes[number].setting
            if setting is not None:
                self.include(number, _setting(setting))
            elif self.def_uses[number].defines_unknown is not None:
                self.include(
                    number, f"may define anything: {self.def_uses[number].defines_unknown}"
                )
        while self._waiting:
            number = self._waiting.pop()
            def_use = self.def_uses.get(number)
            if def_use is None:
                continue
            for name, line in def_use.uses.items():
                self._need(name, number, number, line)
            self._uses_of_own(number, def_use)

    def _uses_of_own(self, number: int, def_use: DefUse) -> None:
        """Functions that the cell defines: their needs count here where the cell uses them.

        Elsewhere they count where the function is used, so that names may stand below it.
        """
        used = _words_used(def_use)
        read = [def_use.bound_at[each] for each in def_use.functions.keys() & def_use.bound_at]
        by_then = frozenset.intersection(*read) if read else frozenset(def_use.defines)
        for owner, found in def_use.functions.items():
            if owner.startswith("."):
                continue  # a method: its class is here too
            bound = def_use.bound_at.get(owner, by_then)
            for name, line in [pair for each in found for pair in each.uses.items()]:
                if name in bound:
                    continue
                if owner in used:
                    self._need(name, number, number, line, later=True)
                elif name not in self.definers and name not in known.PROVIDED | self.set_inside:
                    self.missing.setdefault((number, name), line)

    def _need(self, name: str, at: int, blamed: int, line: int, *, later: bool = False) -> None:
        """Find who gives ``name`` to cell ``at``; ``blamed`` and ``line`` use it.

        With ``later`` it is needed only when something is called, which may be further down.
        """
        if (name, at) in self._asked:
            return
        self._asked.add((name, at))
        family = self.alias_sets.of(name)
        definers = self.definers.get(name, [])
        above = definers[: bisect.bisect_left(definers, at)]
        if later and not above and name not in self.def_uses[at].possible_definitions:
            for number in definers:
                self.include(number, _defines(name, self.def_uses[number]))
            above = definers
        sure = next((each for each in reversed(above) if name in self.def_uses[each].defines), -1)
        for number in above:
            if number >= sure:
                self.include(number, _defines(name, self.def_uses[number]))
                self._uses_of_functions(name, number, at)
        for number in self._changing(family, sure, at):
            changed = family & self.changes[number].names
            said = name if name in changed else min(changed)
            self.include(number, f"may change `{said}`")
        # A function may set it by ``global``: then no cell defines it.
        found = above or name in self.def_uses[at].possible_definitions or name in self.set_inside
        if not found and name not in known.PROVIDED | self.def_uses[at].forgiven:
            self.missing.setdefault((blamed, name), line)

    def _changing(self, family: frozenset[str], after: int, before: int) -> list[int]:
        """Return the cells between two that may change one of a family."""
        numbers = self._changers_of.get(family)
        if numbers is None:
            every = {number for name in family for number in self.changers.get(name, ())}
            numbers = self._changers_of[family] = sorted(every)
        return numbers[bisect.bisect_right(numbers, after) : bisect.bisect_left(numbers, before)]

    def _uses_of_functions(self, name: str, defined: int, at: int) -> None:
        """A function may be called where it is needed: its own needs count there."""
        bound = self.def_uses[at].bound_at.get(name, frozenset())
        callable_ = self.alias_sets.functions_of(name) & self.effects.functions.keys()
        for function in callable_:
            for each in self.effects.functions[function]:
                for inner, line in each.uses.items():
                    if inner not in bound:
                        self._need(inner, at, defined, line, later=True)

    # ------------------------------------------------------------------ problems

    def problems(self, cells: Sequence[NotebookCell]) -> Iterator[Problem]:
        """Yield what is wrong with the chosen cells."""
        for number in sorted(self.why):
            read, def_use = self.reads[number], self.def_uses.get(number)
            for note in read.notes:
                yield Problem(note.level, note.text, cells[number].id, note.line)
            if def_use is not None and def_use.asks is not None:
                text = "asks for input, and nobody answers in a job: give the value in the code"
                yield Problem("error", text, cells[number].id, def_use.asks)
        for (number, name), line in sorted(self.missing.items()):
            yield self._missing(cells, number, name, line)

    def _missing(self, cells: Sequence[NotebookCell], number: int, name: str, line: int) -> Problem:
        here = cells[number].id
        if known.is_earlier_output(name):
            text = f"`{name}` is what an earlier cell printed; in a job it may be another"
            return Problem("warning", text, here, line)
        unknown = [each.defines_unknown for each in self.def_uses.values() if each.defines_unknown]
        if unknown:
            text = f"`{name}` is defined in no cell; it must come from `{unknown[0]}`"
            return Problem("warning", text, here, line)
        opaque = [each for each, read in self.reads.items() if read.opaque and each in self.why]
        level: Level = "warning" if opaque or not self._sure(number, name) else "error"
        later = [each for each, made in self.def_uses.items() if name in made.possible_definitions]
        if later:
            order = "below the selection" if min(later) > self.last else "further down"
            text = f"`{name}` is used before the cell that defines it, which stands {order}"
            return Problem(level, text, here, line)
        text = f"`{name}` is defined in no cell of this notebook{self._similar(name)}"
        return Problem(level, text, here, line)

    def _sure(self, number: int, name: str) -> bool:
        """Say whether the name is surely needed: by the cell itself, or by what some cell calls."""
        def_use = self.def_uses[number]
        if name in def_use.uses:
            return True
        owners = {
            owner.lstrip(".")
            for owner, found in def_use.functions.items()
            if any(name in each.uses for each in found)
        }
        called = {word for each in self.why for word in self._words_of(each)}
        return not owners.isdisjoint(called)

    def _words_of(self, number: int) -> set[str]:
        def_use = self.def_uses.get(number)
        return set() if def_use is None else _words_used(def_use)

    def _similar(self, name: str) -> str:
        names = {each for made in self.def_uses.values() for each in made.possible_definitions}
        close = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.75)
        return f"; did you mean `{close[0]}`?" if close else ""


@functools.lru_cache(maxsize=2048)
def _def_use(tree: ast.Module) -> DefUse:
    # Trees come from the cache of ``magics.read``, so that an unchanged cell is read once.
    return scope_reader.def_use_of(tree)


def _words_used(def_use: DefUse) -> set[str]:
    """Return the words by which a cell may call something, in its functions too."""
    inner = [each for found in def_use.functions.values() for each in found]
    calls = [*def_use.calls, *[call for each in inner for call in each.calls]]
    words = {word for call in calls for word in call.chain}
    for call in calls:
        words.update(*call.arguments, *[held for _, held in call.keywords])
    return words | {source for _, source in def_use.aliases}


def _defines(name: str, def_use: DefUse) -> str:
    return f"imports `{name}`" if name in def_use.imports else f"defines `{name}`"


def _setting(setting: str) -> str:
    return f"sets `{setting}` for what follows"


def _general(
    cells: Sequence[NotebookCell], selected: list[int], search: _Search
) -> Iterator[Problem]:
    if not any(cells[number].source.strip() for number in selected):
        yield Problem("error", "no cell with code is selected: select what the job shall run")
        return
    ran = [cells[number] for number in sorted(search.why) if cells[number].execution_count]
    for before, after in itertools.pairwise(ran):
        if (before.execution_count or 0) > (after.execution_count or 0):
            text = (
                "here the cells ran in another order than they stand in; "
                "the job runs them from top to bottom"
            )
            yield Problem("warning", text, after.id)
            return
