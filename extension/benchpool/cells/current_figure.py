"""Matplotlib's current figure, treated as a name that cells use, define and change.

It is added only to notebooks where a cell reads or draws on it before it begins a figure itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from benchpool.cells import facts
from benchpool.cells.alias_graph import Change
from benchpool.cells.def_use import Alias, Called, DefUse, FunctionSummary

NAME = "matplotlib's current figure"

Event = Literal["begins", "reads", "draws"]
_DEPTH = 4


def noted(def_uses: Mapping[int, DefUse]) -> dict[int, DefUse]:
    """Return the cells with the current figure among the names they use, define and change."""
    imports: dict[str, str] = {}
    functions: dict[str, list[FunctionSummary]] = {}
    for each in def_uses.values():
        imports.update(each.imports)
        for name, found in each.functions.items():
            functions.setdefault(name, []).extend(found)
    if not any(path.startswith(_DRAWING) for path in imports.values()):
        return dict(def_uses)
    reader = _Reader(imports, functions)
    events = {number: list(reader.of(each.calls, _DEPTH)) for number, each in def_uses.items()}
    if not any(found and found[0] != "begins" for found in events.values()):
        return dict(def_uses)
    return {
        number: _noted(each, events[number], reader) if events[number] else each
        for number, each in def_uses.items()
    }


_DRAWING = ("matplotlib", "seaborn")


def _noted(cell: DefUse, events: list[Event], reader: _Reader) -> DefUse:
    first, begins = events[0], "begins" in events
    chosen = [
        Alias(NAME, value)
        for call in cell.calls
        if reader.path(call) == "matplotlib.pyplot.sca"
        for value in call.arguments[:1]
    ]
    return replace(
        cell,
        uses={**cell.uses, NAME: 1} if first == "reads" else cell.uses,
        defines=cell.defines | {NAME} if begins else cell.defines,
        changes={**cell.changes, NAME: Change.DEEP} if "draws" in events else cell.changes,
        aliases=[*cell.aliases, *chosen],
        forgiven=cell.forgiven | {NAME},
    )


class _Reader:
    """Reader of how calls use the current figure, also inside the notebook's own functions."""

    def __init__(
        self, imports: Mapping[str, str], functions: Mapping[str, list[FunctionSummary]]
    ) -> None:
        self._imports = imports
        self._functions = functions

    def path(self, call: Called) -> str:
        if call.chain[0] not in self._imports or not {"()", "[]"}.isdisjoint(call.chain):
            return ""
        return ".".join([self._imports[call.chain[0]], *call.chain[1:]])

    def of(self, calls: Iterable[Called], depth: int) -> Iterator[Event]:
        for call in calls:
            path = self.path(call)
            event = _event(call, path) if path else _of_method(call)
            if event is not None:
                yield event
            elif depth and not path:
                name = call.chain[-1] if len(call.chain) == 1 else f".{call.chain[-1]}"
                for each in self._functions.get(name, ())[:2]:
                    yield from self.of(each.calls, depth - 1)


def _event(call: Called, path: str) -> Event | None:
    if any(word in {"ax", "axes"} for word, _ in call.keywords):
        return None
    named = bool(call.arguments)
    if named and not call.alone and path.endswith(".figure"):
        return "reads"
    asks = not named and not call.keywords and not call.alone
    return facts.on_current_figure(path, asks=asks, names_one=named)


def _of_method(call: Called) -> Event | None:
    """Return the event of ``df.plot()``: it draws on the current figure, or on a new one."""
    on_axes = any(word == "ax" for word, _ in call.keywords)
    is_drawing = "plot" in call.chain[1:] and not call.arguments and not on_axes
    return "draws" if is_drawing else None
