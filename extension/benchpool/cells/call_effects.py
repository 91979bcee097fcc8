"""What calls change, followed through the functions that the notebook itself defines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from benchpool.cells import known
from benchpool.cells.def_use import Called, DefUse, FunctionSummary


@dataclass(slots=True)
class Effect:
    """What a call changes.

    Attributes:
        names: Names of the place where it stands.
        outer: Names of the notebook itself, by functions that reach for them.
        setting: A setting that holds for all that follows.
    """

    names: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)
    setting: str | None = None


class Effects:
    """The functions of a notebook and what calling them does, and what its imports are.

    Functions are known by their bare names; two with one name count as both.
    """

    def __init__(self, def_uses: Iterable[DefUse]) -> None:
        self.functions: dict[str, list[FunctionSummary]] = {}
        self.imports: dict[str, str] = {}
        for each in def_uses:
            self.imports.update(each.imports)
            for name, found in each.functions.items():
                self.functions.setdefault(name, []).extend(found)
        self._parameters: dict[int, set[str]] = {}
        self._outer: dict[int, Effect] = {}
        self._settle()

    def of_cell(self, cell: DefUse) -> Effect:
        """Return all that running a cell changes."""
        effect = Effect(set(cell.changes) - set(self.imports))
        for name in cell.changes & set(self.imports):
            effect.setting = effect.setting or f"{name}…"
        for call in cell.calls:
            self._add(effect, self.of_call(call))
        effect.setting = next(iter(cell.ambient), None) or effect.setting
        effect.names |= effect.outer
        return effect

    def outer_of(self, function: str) -> set[str]:
        """Return the names of the notebook that calling a function of it may change."""
        found = [self._outer[id(each)].outer for each in self.functions.get(function, ())]
        return set().union(*found)

    def of_call(self, call: Called) -> Effect:
        """Return what one call changes, in the names of the place where it stands."""
        first, last = call.chain[0], call.chain[-1]
        if first in self.imports:
            return self._of_imported(call, self.imports[first])
        mine = self.functions.get(first if len(call.chain) == 1 else f".{last}")
        if mine:
            return self._of_own(call, mine)
        names = set()
        if len(call.chain) == 1:
            if not known.leaves_arguments(None, last):
                names = self._given(call)
        elif last not in known.READING_METHODS or self._in_place(call):
            names = self._given(call) | {first}
        return Effect(names - set(self.imports))

    def _of_imported(self, call: Called, module: str) -> Effect:
        if known.is_ambient(call.chain):
            words = [word for word in call.chain if word not in {"()", "[]"}]
            return Effect(setting=".".join(words))
        whole = module if len(call.chain) > 1 else module.rpartition(".")[0]
        if known.leaves_arguments(whole, call.chain[-1]) and not self._in_place(call):
            return Effect()
        return Effect(self._given(call) - set(self.imports))

    def _of_own(self, call: Called, mine: list[FunctionSummary]) -> Effect:
        effect = Effect()
        if len(call.chain) > 1:
            effect.names.add(call.chain[0])  # a method of the notebook may change its object
        for each in mine:
            self._add(effect, self._outer.get(id(each), Effect()))
            effect.names |= self._passed(call, each, self._parameters.get(id(each), set()))
        effect.names -= set(self.imports)
        return effect

    @staticmethod
    def _passed(call: Called, function: FunctionSummary, changed: set[str]) -> set[str]:
        names: set[str] = set()
        for position, held in enumerate(call.arguments):
            inside = position < len(function.parameters)
            parameter = function.parameters[position] if inside else function.rest
            if parameter in changed:
                names |= held
        for word, held in call.keywords:
            if word is None or word in changed or word not in function.parameters:
                names |= held
        return names

    @staticmethod
    def _given(call: Called) -> set[str]:
        held = [*call.arguments, *[names for _, names in call.keywords]]
        return set().union(*held)

    @staticmethod
    def _in_place(call: Called) -> bool:
        return any(word in {"inplace", "out"} for word, _ in call.keywords)

    @staticmethod
    def _add(effect: Effect, more: Effect) -> None:
        effect.names |= more.names
        effect.outer |= more.outer
        effect.setting = effect.setting or more.setting

    def _settle(self) -> None:
        """Follow calls of functions by functions until nothing new is found."""
        every = [each for found in self.functions.values() for each in found]
        for each in every:
            self._split(each, Effect(set(each.changes)))
        for _ in range(len(every) + 1):
            grew = [self._grow(each) for each in every]
            if not any(grew):
                return

    def _grow(self, function: FunctionSummary) -> bool:
        before = self._size(function)
        effect = Effect()
        for call in function.calls:
            self._add(effect, self.of_call(call))
        effect.names = _with_sources(effect.names, function.aliases)
        self._split(function, effect)
        return self._size(function) > before

    def _size(self, function: FunctionSummary) -> int:
        outer = self._outer[id(function)]
        return len(self._parameters[id(function)]) + len(outer.outer) + (outer.setting is not None)

    def _split(self, function: FunctionSummary, effect: Effect) -> None:
        parameters = {*function.parameters, function.rest} - {None}
        mine = self._parameters.setdefault(id(function), set())
        mine |= {name for name in effect.names if name in parameters}
        outer = self._outer.setdefault(id(function), Effect())
        outer.outer |= {name for name in effect.names if name in function.uses}
        outer.outer |= (function.changes - parameters) | effect.outer
        outer.setting = outer.setting or effect.setting


def _with_sources(names: set[str], aliases: set[tuple[str, str]]) -> set[str]:
    """Return the names and everything that they may be made of."""
    found, waiting = set(names), list(names)
    while waiting:
        name = waiting.pop()
        more = {source for target, source in aliases if target == name} - found
        found |= more
        waiting += more
    return found


@dataclass(frozen=True, slots=True)
class AliasSets:
    """Names whose objects may be the same, or one inside the other.

    Imported and built-in names join nobody: they are in nearly everything. Nor do functions and
    classes of the notebook: two objects of a class are two; ``holds`` keeps who may call them.
    """

    members: Mapping[str, frozenset[str]]
    holds: Mapping[str, frozenset[str]]

    def of(self, name: str) -> frozenset[str]:
        """Return the alias set of a name, itself included."""
        return self.members.get(name, frozenset((name,)))

    def functions_of(self, name: str) -> frozenset[str]:
        """Return the functions and classes that its objects may call, itself included."""
        held = [self.holds[each] for each in self.of(name) if each in self.holds]
        return frozenset((name,)).union(*held)


def alias_sets(def_uses: Iterable[DefUse], effects: Effects) -> AliasSets:
    """Join what is assigned from one another anywhere in the notebook."""
    outside = effects.imports.keys() | known.PROVIDED
    joined: dict[str, set[str]] = {}
    holds: dict[str, set[str]] = {}
    for def_use in def_uses:
        for target, source in def_use.aliases:
            if target in outside or source in outside:
                continue
            if source in effects.functions:
                holds.setdefault(target, set()).add(source)
                continue
            mine, other = joined.setdefault(target, {target}), joined.setdefault(source, {source})
            if mine is not other:
                larger, smaller = sorted((mine, other), key=len, reverse=True)
                larger |= smaller
                joined.update(dict.fromkeys(smaller, larger))
    frozen = {id(family): frozenset(family) for family in joined.values()}
    return AliasSets(
        {name: frozen[id(family)] for name, family in joined.items()},
        {name: frozenset(held) for name, held in holds.items()},
    )
