"""Listeners of objects: hooks, observers, handlers, linked widgets and weak references.

A listener may run when its object is called, passed on or set. A weak reference acts when its
object is deleted or the name is rebound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from benchpool.cells import facts
from benchpool.cells.alias_graph import NOTHING, HeldNames
from benchpool.cells.def_use import Called, DefUse, FunctionSummary
from benchpool.cells.effect import CallSummary
from benchpool.cells.own_code import OwnCode
from benchpool.cells.results import CallResults, arguments_of


def found(
    def_uses: Iterable[DefUse], code: OwnCode, results: CallResults
) -> Mapping[str, frozenset[str]]:
    """Return for each name the objects that listen to it: ``hook`` to ``net`` in ``Hook(net)``."""
    by_name: dict[str, frozenset[str]] = {}
    for cell in def_uses:
        for alias in cell.aliases:
            for call in alias.value.calls:
                if call.chain[0] in code.classes and len(call.chain) == 1:
                    for name in _observed_by_object(call, code, results):
                        by_name[name] = by_name.get(name, frozenset()) | {alias.target}
        for call in cell.calls:
            for name, listening in _observed_by_call(call, code, results):
                by_name[name] = by_name.get(name, frozenset()) | (listening - {name})
    return by_name


def _observed_by_object(call: Called, code: OwnCode, results: CallResults) -> Iterator[str]:
    for each in _registering(call, code):
        keeps = code.settled.get(id(each), CallSummary()).effect.keeps
        for parameter, values in arguments_of(call, each).items():
            if parameter in keeps:
                for value in values:
                    yield from results.held(value).reached


def _observed_by_call(
    call: Called, code: OwnCode, results: CallResults
) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield names and their listeners from a registering method, or a function that calls one."""
    if call.receiver is not None and facts.registers(call.chain[-1]):
        listening = results.given(call).reached - code.functions.keys()
        yield from ((name, listening) for name in results.held(call.receiver).reached)
    for each in _registering(call, code) if call.chain[0] not in code.classes else ():
        keeps = code.settled.get(id(each), CallSummary()).effect.keeps
        for parameter, values in arguments_of(call, each).items():
            listening = results.bound(call, each, keeps.get(parameter, NOTHING)).reached
            for value in values:
                yield from ((name, listening) for name in results.held(value).reached)


def _registering(call: Called, code: OwnCode) -> list[FunctionSummary]:
    return [
        each
        for each in code.called(call, frozenset())
        if any(facts.registers(inner.chain[-1]) for inner in each.calls)
    ]


def linked(cell: DefUse, code: OwnCode, results: CallResults) -> Iterator[frozenset[str]]:
    """Yield the names that a cell links, so that a change of one is a change of the others."""
    for call in cell.calls:
        if facts.links(code.path(call) or ""):
            yield results.given(call).reached


def changed_when_freed(
    def_uses: Iterable[DefUse], code: OwnCode, results: CallResults
) -> frozenset[str]:
    """Return the names that change when objects are freed: weak dictionaries and callbacks."""
    cells = list(def_uses)
    functions = [each for found in code.functions.values() for each in found]
    changed: set[str] = set()
    scopes: list[DefUse | FunctionSummary] = [*cells, *functions]
    for scope in scopes:
        for call in scope.calls:
            if facts.acts_when_freed(code.path(call) or ""):
                changed |= _called_at_end(call, results).reached
        for alias in scope.aliases:
            if any(facts.acts_when_freed(code.path(call) or "") for call in alias.value.calls):
                changed.add(alias.target)
    return frozenset(changed - code.functions.keys()) | _changed_by(changed, code)


def _called_at_end(call: Called, results: CallResults) -> HeldNames:
    joined = NOTHING
    for value in [*call.arguments[1:], *[value for _, value in call.keywords]]:
        joined |= results.held(value)
    return joined


def _changed_by(names: set[str], code: OwnCode) -> frozenset[str]:
    functions = [each for name in names for each in code.functions.get(name, ())]
    settled = [code.settled.get(id(each), CallSummary()) for each in functions]
    return frozenset(name for each in settled for name in each.effect.outer)
