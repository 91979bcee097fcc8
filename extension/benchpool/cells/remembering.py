"""Functions that cache their results: a cache may be read, or return an outdated result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchpool.cells import facts
from benchpool.cells.def_use import DefUse, FunctionSummary
from benchpool.cells.own_code import OwnCode


def called(
    def_uses: Iterable[DefUse], code: OwnCode, definers: Mapping[str, Sequence[int]]
) -> Mapping[str, frozenset[str]]:
    """Return for each function of a notebook the caching functions that it calls.

    Only functions whose cache has a visible effect count: code reads the cache, or the function
    uses a name that several cells bind.
    """
    functions = code.functions
    caching = {
        name
        for name, found in functions.items()
        if any(facts.remembers(code.dotted(by)) for each in found for by in each.decorators)
    }
    if not caching:
        return {}
    asked = any(facts.asks_cache(call.chain[-1]) for cell in def_uses for call in cell.calls)
    shown = {
        name
        for name in caching
        if asked or any(_may_be_old(each, code, definers) for each in functions[name])
    }
    found = {name: frozenset(each.owner or name for each in functions[name]) for name in shown}
    grew = bool(found)
    while grew:
        grew = False
        for name, summaries in functions.items():
            chains = [call.chain for each in summaries for call in each.calls]
            words = {each[0] if len(each) == 1 else f".{each[-1]}" for each in chains}
            both = frozenset[str]().union(*[found[each] for each in words & found.keys()])
            if not both <= found.get(name, frozenset()):
                found[name] = found.get(name, frozenset()) | both
                grew = True
    return found


def _may_be_old(
    function: FunctionSummary, code: OwnCode, definers: Mapping[str, Sequence[int]]
) -> bool:
    return any(
        len(definers.get(name, ())) > 1 and name not in code.functions for name in function.uses
    )
