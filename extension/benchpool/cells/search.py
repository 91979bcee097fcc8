"""Search from needed names back to the cells that define or may change them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Iterable, Mapping, Sequence

from benchpool.cells import accumulators, current_figure, known, magics, scope_reader
from benchpool.cells.cell_changes import CellChanges
from benchpool.cells.def_use import DefUse
from benchpool.cells.magics import ParsedCell
from benchpool.cells.random_state import RandomState

TICKED = "ticked by you"
"""Reason for a cell that is included only because the user ticked it."""


def def_uses_of(reads: Mapping[int, ParsedCell]) -> dict[int, DefUse]:
    """Return the names that cells use and define, except cells that do not parse or that send."""
    return {number: _def_use(tree) for number, tree in _trees(reads)}


_Trees = tuple[tuple[int, ast.Module], ...]


def _trees(reads: Mapping[int, ParsedCell]) -> _Trees:
    return tuple(
        (number, read.tree)
        for number, read in reads.items()
        if read.tree is not None and not read.sends
    )


def figures_noted(reads: Mapping[int, ParsedCell]) -> Mapping[int, DefUse]:
    """Return the names that cells use and define, with matplotlib's current figure among them."""
    return _noted(_trees(reads))


# The dialog asks for the same cells several times: for offers, and after each tick.
@functools.lru_cache(maxsize=4)
def _noted(trees: _Trees) -> Mapping[int, DefUse]:
    return current_figure.noted({number: _def_use(tree) for number, tree in trees})


@functools.lru_cache(maxsize=4)
def _changes_of(trees: _Trees, last: int) -> CellChanges:
    """Return the changes of cells up to the last one. A search takes a ``fresh_copy``."""
    return CellChanges({number: each for number, each in _noted(trees).items() if number <= last})


class Search:
    """Search from needed names back to the cells that define them, by position in the notebook.

    Attributes:
        why: The included cells, and the reason for each.
        gives: For each included cell, the names that other cells need from it, and those cells.
        missing: Names that no cell defines: (cell, name) and the line.
        failed: Cells that failed when they last ran: they are included only for their definitions.
        stays_out: Cells excluded for that reason, and the names they may change.
        given: Names whose values are sent, and the last cell that may change each.
        made_again: Sent names of which an earlier value is needed.
    """

    def __init__(
        self,
        reads: Mapping[int, ParsedCell],
        last: int,
        changes: CellChanges | None = None,
        def_uses: Mapping[int, DefUse] | None = None,
    ) -> None:
        self.reads = reads
        self.last = last
        self.def_uses = figures_noted(reads) if def_uses is None else def_uses
        self.above = [number for number in self.def_uses if number <= last]
        self.changes = (
            changes if changes is not None else _changes_of(_trees(reads), last).fresh_copy()
        )
        self.definers = self.changes.definers
        self.set_inside = self.changes.code.rebound
        self.random = RandomState(self.changes)
        self.why: dict[int, str] = {}
        self.failed: Collection[int] = ()
        self.stays_out: dict[int, str] = {}
        self.given: dict[str, int] = {}
        self.made_again: set[str] = set()
        self.gives: dict[int, dict[str, set[int]]] = {}
        self.missing: dict[tuple[int, str], int] = {}
        self._wanted: frozenset[int] = frozenset()
        self._asked: set[tuple[str, int, frozenset[str] | None, bool]] = set()
        self._waiting: list[int] = []

    def include(self, number: int, why: str) -> None:
        """Include a cell; ``run`` follows its own needs."""
        if number not in self.why:
            self.why[number] = why
            self._waiting.append(number)

    def fresh_copy(self) -> Search:
        """Return a copy in the state before any search."""
        other = Search(self.reads, self.last, self.changes.fresh_copy(), self.def_uses)
        other.failed = self.failed
        return other

    def run(
        self, selected: Sequence[int], given: Collection[str] = (), ticked: Sequence[int] = ()
    ) -> None:
        """Include the cells that the selected ones need, except for names whose values are sent.

        ``ticked`` cells are included too, each as needed by another cell if one needs it.
        """
        self._wanted = frozenset([*selected, *ticked])
        self.given = {each: self.changes.last_touched(each, selected) for each in given}
        for number in selected:
            self.include(number, "selected")
        for number in self.above:
            setting = self.changes.effects[number].setting
            if number in self.failed:
                continue
            if setting is not None:
                self.include(number, _setting(setting))
            elif (may_set := self.changes.effects[number].may_set) is not None:
                self.include(number, f"calls `{may_set}`, which may set something for later cells")
            elif self.def_uses[number].defines_unknown is not None:
                self.include(
                    number, f"may define anything: {self.def_uses[number].defines_unknown}"
                )
        self.follow(set(self.why))
        for number in ticked:
            self.include(number, TICKED)
        self.follow(ticked)

    def overwritten(self, selected: Collection[int]) -> set[str]:
        """Return the sent names that an included cell may set or change again."""
        taken = self.why.keys() - {*selected}
        return {name for name in self.given if not taken.isdisjoint(self.changes.touching(name))}

    def follow(self, selected: Collection[int]) -> None:
        """Follow the needs of the cells included so far, and of the cells they need."""
        while self._waiting:
            number = self._waiting.pop()
            def_use = self.def_uses.get(number)
            if def_use is None:
                continue
            for name, line in def_use.uses.items():
                self._need(name, number, number, line)
            self._uses_of_own(number, def_use)
            if def_use.uses_unknown is not None:
                self._need_all(number)
            for other, why in self.random.needed(number, is_selected=number in selected):
                self.include(other, why)

    def _need_all(self, at: int) -> None:
        """Include all names above a cell whose uses cannot be known."""
        for name, definers in self.definers.items():
            if definers[0] < at:
                self._need(name, at, at, 0)

    def _uses_of_own(self, number: int, def_use: DefUse) -> None:
        """Count the needs of functions that the cell defines and itself uses.

        Otherwise the needs count where the function is used, so that names may be defined below it.
        """
        used = words_used(def_use)
        read = [def_use.bound_at[each] for each in def_use.functions.keys() & def_use.bound_at]
        by_then = frozenset.intersection(*read) if read else frozenset(def_use.defines)
        for owner, found in def_use.functions.items():
            if owner.startswith("."):
                continue  # a method: its class is here too
            bound = def_use.bound_at.get(owner, by_then)
            given_away = {
                name
                for each in found
                if self.changes.code.is_given_away(each)
                for name in each.uses
            }
            forgiven = frozenset[str]().union(*(each.forgiven for each in found))
            for name, line in [pair for each in found for pair in each.uses.items()]:
                if name in bound:
                    continue
                perhaps = name in forgiven
                if owner in used or name in given_away:
                    self._need(name, number, number, line, later=True, perhaps=perhaps)
                elif (
                    not perhaps
                    and name not in self.definers
                    and name not in known.PROVIDED | self.set_inside
                ):
                    self.missing.setdefault((number, name), line)

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
        """Find the cells that give ``name`` to cell ``at``; cell ``blamed`` uses it at ``line``.

        With ``later``, the name is needed only when a function is called, which may be further
        down. By then the cell has ``bound`` these names itself, if that is known. With ``perhaps``,
        the name may be missing.
        """
        if (name, at, bound, perhaps) in self._asked:
            return
        self._asked.add((name, at, bound, perhaps))
        if at > self.given.get(name, at):
            return
        if name in self.given:
            self.made_again.add(name)
        definers = self.definers.get(name, [])
        above = self.changes.bound(name, at)
        if later and not above and name not in self.def_uses[at].possible_definitions:
            above = definers
        for number in above:
            self.include(number, _defines(name, self.def_uses[number]))
            self.gives.setdefault(number, {}).setdefault(name, set()).add(at)
            self._uses_of_functions(name, number, at, bound)
        for number, shown in self._changing(name, at):
            if number in self.failed:
                self.stays_out.setdefault(number, shown)
            else:
                self.include(number, f"may change `{shown}`")
        if name in self.def_uses[at].forgiven:
            for number in [each for each in self.above if each < at]:
                if name in self.def_uses[number].deletes:
                    self.include(number, f"deletes `{name}`")
        if name == "_":
            self._need_last_result(at)
        # A function may set it with ``global``: then no cell defines it.
        found = above or name in self.def_uses[at].possible_definitions or name in self.set_inside
        if not (found or perhaps) and name not in known.PROVIDED | self.def_uses[at].forgiven:
            self.missing.setdefault((blamed, name), line)

    def _changing(self, name: str, at: int) -> Iterable[tuple[int, str]]:
        """Return the cells above that may change a name; none if cell ``at`` only adds to it."""
        tree = self.reads[at].tree
        adds = tree is not None and name in accumulators.only_added_to(tree)
        return () if adds and at not in self._wanted else self.changes.changing(name, at)

    def _need_last_result(self, at: int) -> None:
        """Include the last cell with a result, for which ``_`` stands."""
        for number in reversed([each for each in self.above if each < at]):
            if magics.gives_result(self.reads[number]):
                self.include(number, "produces the value of `_`")
                return

    def _uses_of_functions(
        self, name: str, defined: int, at: int, bound: frozenset[str] | None
    ) -> None:
        """Count the needs of a function where it is needed, since it may be called there."""
        if bound is None:
            bound = self.def_uses[at].bound_at.get(name, frozenset())
        for function in self.changes.functions_of(name, at):
            for inner, line in function.uses.items():
                if inner not in bound:
                    perhaps = inner in function.forgiven
                    self._need(inner, at, defined, line, later=True, bound=bound, perhaps=perhaps)


@functools.lru_cache(maxsize=1024)
def _def_use(tree: ast.Module) -> DefUse:
    # Trees come from the cache of ``magics.read``, so that an unchanged cell is read once.
    return scope_reader.def_use_of(tree)


def names_bound(source: str) -> set[str]:
    """Return the names that a cell may bind."""
    tree = magics.read(source).tree
    return set() if tree is None else _def_use(tree).possible_definitions


def words_used(def_use: DefUse) -> set[str]:
    """Return the words with which a cell and its functions may call something."""
    inner = [each for found in def_use.functions.values() for each in found]
    calls = [*def_use.calls, *[call for each in inner for call in each.calls]]
    words = {word for call in calls for word in call.chain}
    for call in calls:
        words.update(*[each.mentioned | each.inside for each in call.given])
    return words.union(*[each.value.mentioned | each.value.inside for each in def_use.aliases])


def _defines(name: str, def_use: DefUse) -> str:
    return f"imports `{name}`" if name in def_use.imports else f"defines `{name}`"


def _setting(setting: str) -> str:
    return f"sets `{setting}` for later cells"
