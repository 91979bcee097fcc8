"""Effects of calling each function of a notebook, iterated until nothing new is found."""

from __future__ import annotations

from typing import Any

from benchpool.cells import setting_facts
from benchpool.cells.alias_graph import AliasGraph, Change, HeldNames
from benchpool.cells.call_effects import CallEffects
from benchpool.cells.def_use import INSTANCES, LOGGERS, FunctionSummary
from benchpool.cells.effect import CallSummary, Effect
from benchpool.cells.kinds import Kinds
from benchpool.cells.own_code import OwnCode
from benchpool.cells.results import CallResults

_TURNS = 8


def settle(code: OwnCode, notebook: Kinds) -> None:
    """Fill ``code.settled`` for all functions.

    Args:
        code: The notebook's functions and classes.
        notebook: The kinds of the notebook's own names.
    """
    every = {id(each): (each, name) for name, found in code.functions.items() for each in found}
    code.settled = summaries = _Summaries()
    for _ in range(_TURNS):
        grew = False
        for number, (function, name) in every.items():
            if summaries.is_current(number):
                continue
            before = code.settled.get(number, CallSummary()).size()
            summaries.begin(number)
            settled = _settled(code, function, name, notebook)
            grew = grew or settled.size() != before
            summaries.end(number, settled)
        if not grew:
            break
    code.settled = dict(summaries)


class _Summaries(dict[int, CallSummary]):
    """Summaries by function, with a record of which others each was computed from."""

    def __init__(self) -> None:
        super().__init__()
        self._version = 0
        self._changed: dict[int, int] = {}
        """Version in which a summary last changed."""
        self._read: dict[int, tuple[int, set[int]]] = {}
        """Version in which a summary was computed, and the summaries that were read."""
        self._reading: set[int] = set()

    def get(self, number: int, default: Any = None, /) -> Any:
        """Return a summary, and record that it was read."""
        self._reading.add(number)
        return super().get(number, default)

    def begin(self, number: int) -> None:
        """Record the summaries that are read from now on for one function."""
        self._reading = set()
        self._read[number] = (self._version, self._reading)

    def end(self, number: int, summary: CallSummary) -> None:
        """Set the summary of the function that began."""
        self._reading = set()
        if number not in self or self[number] != summary:
            self._version += 1
            self._changed[number] = self._version
        self[number] = summary

    def is_current(self, number: int) -> bool:
        """Return whether nothing has changed that a summary was computed from."""
        if number not in self._read:
            return False
        version, read = self._read[number]
        return all(self._changed.get(each, 0) <= version for each in read)


def _settled(code: OwnCode, function: FunctionSummary, name: str, notebook: Kinds) -> CallSummary:
    kinds = Kinds(function.aliases, code, _Outside(function, notebook))
    results = CallResults(code, kinds)
    graph = AliasGraph[str]()
    for alias in function.aliases:
        held = results.held(alias.value)
        held = held.as_inside() if alias.is_kept else held
        graph.add(alias.target, held.same, held.part, held.inside, held.quiet)
    calls = CallEffects(code, kinds, results)
    effect = Effect(setting=function.setting or _set_on_module(code, function))
    for how in Change:
        effect.change([each for each, depth in function.changes.items() if depth == how], how)
    for call in function.calls:
        effect.add(calls.of(call))
    effect.add(calls.loops(function))
    for root, method in code.implicit(function):
        effect.add(calls.implicit(root, method))
    for target, held in effect.keeps.items():
        graph.add(target, (), (), held.inside, held.quiet)
    return _expressed_outside(code, function, name, effect, results, graph)


def _set_on_module(code: OwnCode, function: FunctionSummary) -> str | None:
    """Return the module in which a body sets a value (``os.environ[k] = v``), or None.

    A plotting function that sets the look of figures is not a setting: each call sets it again.
    """
    mine = {*function.parameters, function.rest, *function.own}
    for name in function.changes.keys() & code.imports.keys() - mine:
        if not function.calls or code.imports[name].partition(".")[0] not in setting_facts.PICTURES:
            return f"{name}…"
    return None


class _Outside(Kinds):
    """Kinds of the notebook as a function sees them; the kinds of its parameters are unknown."""

    def __init__(self, function: FunctionSummary, notebook: Kinds) -> None:
        self._mine = {*function.parameters, function.rest, *function.own}
        self._notebook = notebook

    def of_name(self, name: str) -> frozenset[str]:
        return frozenset() if name in self._mine else self._notebook.of_name(name)

    def is_fixed(self, name: str) -> bool:
        return name not in self._mine and self._notebook.is_fixed(name)

    def holds_fixed(self, name: str) -> bool:
        return name not in self._mine and self._notebook.holds_fixed(name)


def _expressed_outside(
    code: OwnCode,
    function: FunctionSummary,
    name: str,
    effect: Effect,
    results: CallResults,
    graph: AliasGraph[str],
) -> CallSummary:
    """Return the findings expressed in parameters, ``self`` and names of the notebook."""
    parameters = {each for each in (*function.parameters, function.rest) if each is not None}
    local = function.own - parameters
    settled = CallSummary()
    settled.effect.add_ambient(effect)
    called, holders = graph.taken_from(effect.calls), graph.needed(effect.calls_held)
    settled.effect.calls = called & parameters
    settled.effect.calls_held = holders & parameters
    settled.calls_fields = any(each.startswith(("self.", "cls.")) for each in called) or any(
        each.partition(".")[0] in INSTANCES for each in holders
    )
    settled.iterates_fields = any(
        each.partition(".")[0] in INSTANCES for each in graph.taken_from(effect.iterates)
    )
    for changed, how in graph.reached(effect.changes).items():
        root, _, field = changed.partition(".")
        if root in INSTANCES and function.owner is not None:
            settled.fields[field] = max(how, settled.fields.get(field, how))
        elif changed in parameters:
            settled.effect.change([changed], how)
            settled.effect.change_outer(dict.fromkeys(function.defaults.get(changed, ()), how))
            if changed in function.grows:
                settled.effect.change_outer({function.owner or name: Change.SHALLOW})
        elif changed == LOGGERS or (
            changed not in local and (changed in function.uses or changed in function.changes)
        ):
            settled.effect.change_outer({changed: how})
    _shared_lists(code, function, settled)

    def outside(held: HeldNames) -> HeldNames:
        return _outside(held, graph, local)

    kept = [(each.target, results.held(each.value)) for each in function.aliases]
    for target, held in [*kept, *effect.keeps.items()]:
        same = [target] if target not in local else graph.reached({target: Change.ITEM})
        for each in same:
            if each not in local:
                settled.effect.keep(each, outside(held))
    for value in function.returns:
        settled.returns |= outside(results.held(value))
    return settled


def _outside(
    held: HeldNames, graph: AliasGraph[str], local: frozenset[str] | set[str]
) -> HeldNames:
    """Return what is held, with the body's local names replaced by what those hold."""
    if held.names.isdisjoint(local):
        return held
    same = graph.reached(dict.fromkeys(held.same, Change.ITEM)).keys() - local
    part = graph.reached(dict.fromkeys(held.same | held.part, Change.SHALLOW)).keys() - local
    inside = graph.reached(dict.fromkeys(held.reached, Change.DEEP)).keys() - local
    quiet = graph.needed(held.names) - local
    return HeldNames(
        frozenset(same), frozenset(part - same), frozenset(inside - part), frozenset(quiet - inside)
    )


def _shared_lists(code: OwnCode, function: FunctionSummary, settled: CallSummary) -> None:
    """Note that a list in the body of a class is shared by all its objects."""
    if function.owner is None:
        return
    for owner in code.family(function.owner):
        shared = {name for each in code.classes[owner] for name in each.shared}
        if not shared.isdisjoint(settled.fields):
            settled.effect.change_outer({owner: Change.SHALLOW})
