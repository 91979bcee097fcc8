"""Changes that each cell of a notebook makes, and the names that see them.

Each cell that binds a name creates a new version of it, so that a model of an earlier chapter is
distinct from a later model of the same name. A node is such a version: (name, number of the cell).
"""

from __future__ import annotations

import bisect
import copy
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from benchpool.cells import current_figure, facts, iteration, listeners, remembering
from benchpool.cells.alias_graph import AliasGraph, Change, HeldNames
from benchpool.cells.call_effects import CallEffects
from benchpool.cells.def_use import CellValue, DefUse, FunctionSummary
from benchpool.cells.effect import CallSummary, Effect
from benchpool.cells.function_effects import settle
from benchpool.cells.kinds import Kinds
from benchpool.cells.own_code import OwnCode
from benchpool.cells.results import CallResults

Node = tuple[str, int]
_UNBOUND = -1


class CellChanges:
    """Changes of cells, by number, among the cells above the selection's end."""

    def __init__(
        self,
        def_uses: Mapping[int, DefUse],
        apart: frozenset[tuple[Node, Node]] = frozenset(),
    ) -> None:
        self.def_uses = def_uses
        self.code = OwnCode(def_uses.values())
        aliases = [alias for each in def_uses.values() for alias in each.aliases]
        self.kinds = Kinds(aliases, self.code, None)
        settle(self.code, self.kinds)
        self.kinds = Kinds(aliases, self.code, None)
        self._results = CallResults(self.code, self.kinds)
        self._calls = CallEffects(self.code, self.kinds, self._results)
        self.definers: dict[str, list[int]] = {}
        for number, each in def_uses.items():
            for name in each.possible_definitions:
                self.definers.setdefault(name, []).append(number)
        self._sets_outer = bool(self.set_inside())
        drawing = any(each.effect.draws for each in self.code.settled.values())
        self._holds_effects = self._sets_outer or drawing
        cells = def_uses.values()
        self._listeners = listeners.found(cells, self.code, self._results)
        self._ends = listeners.changed_when_freed(cells, self.code, self._results)
        self._remembering = remembering.called(cells, self.code, self.definers)
        self._reported: dict[Node, int] = {}
        self._given: set[int] = set()
        self._fixed: frozenset[Node] = frozenset()
        self._connect(apart)

    def _connect(self, apart: frozenset[tuple[Node, Node]]) -> None:
        """Tie the objects and mark the cells that change them, except over pairs ``apart``."""
        self._apart = apart
        self.tied_pairs: set[tuple[Node, Node]] = set()
        """Each object with those that it may be, may be a part of, or holds."""
        self._graph = AliasGraph[Node]()
        self.effects: dict[int, Effect] = {}
        for number, each in self.def_uses.items():
            self._tie(number, each)
            self.effects[number] = self._effect(each)
            for target, held in self.effects[number].keeps.items():
                kept_by = self._here(target, number)
                self._add([*kept_by, *self._graph.wholes(kept_by)], held, number, False)
        self._changers: defaultdict[Node, list[int]] = defaultdict(list)
        for number in self.def_uses:
            self._mark(number)
        functions = [
            (name, number) for name in self.code.functions for number in self._numbers(name)
        ]
        self._calling = self._graph.holders(functions)

    # ------------------------------------------------------------------ questions

    def fresh_copy(
        self,
        fixed: frozenset[Node] | None = None,
        apart: frozenset[tuple[Node, Node]] = frozenset(),
    ) -> CellChanges:
        """Return a copy for another search.

        Args:
            fixed: Objects that are known never to change; None for those of this one.
            apart: Pairs of objects of which a change of one does not affect the other.
        """
        other = copy.copy(self)
        if not apart.isdisjoint(self.tied_pairs):
            other._connect(apart)
        other._reported, other._given = {}, set()
        other._fixed = self._fixed if fixed is None else fixed
        return other

    def bound(self, name: str, before: int) -> list[int]:
        """Return the cells that may have bound a name when a cell begins, the certain one first."""
        definers = self.definers.get(name, [])
        above = definers[: bisect.bisect_left(definers, before)]
        for position in reversed(range(len(above))):
            if name in self.def_uses[above[position]].defines:
                return above[position:]
        return above

    def changing(self, name: str, before: int) -> list[tuple[int, str]]:
        """Return the cells above one that may change a name's value, and the name each changes.

        A cell that was returned for another name is not returned again.
        """
        found: dict[int, str] = {}
        waiting = self._nodes(name, self.bound(name, before))
        while waiting:
            node = waiting.pop(0)
            reported = self._reported.get(node, _UNBOUND)
            if reported >= before or node in self._fixed:
                continue
            self._reported[node] = before
            changers = self._changers.get(node, [])
            first = bisect.bisect_left(changers, reported) if reported != _UNBOUND else 0
            last = bisect.bisect_left(changers, before)
            for number in set(changers[first:last]) - self._given:
                self._given.add(number)
                found[number] = node[0]
            waiting += self._graph.held(node)
        return sorted(found.items())

    def may_change(self, node: Node) -> bool:
        """Return whether a cell may change an object, or one that it holds."""
        waiting, seen = [node], {node}
        while waiting:
            each = waiting.pop()
            if self._changers.get(each):
                return True
            more = [other for other in self._graph.held(each) if other not in seen]
            seen.update(more)
            waiting += more
        return False

    def last_touched(self, name: str, apart: Collection[int]) -> int:
        """Return the last cell outside ``apart`` that may bind or change a name, or -1."""
        return max(self.touching(name) - set(apart), default=-1)

    def touching(self, name: str) -> set[int]:
        """Return the cells that may bind a name or change its value."""
        found = set(self.definers.get(name, ()))
        waiting = self._nodes(name, found)
        seen: set[Node] = set()
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                found.update(self._changers.get(node, ()))
                waiting += self._graph.held(node)
        return found

    def functions_of(self, name: str, before: int) -> list[FunctionSummary]:
        """Return the functions and methods that an object may call, its own included."""
        mine = self._nodes(name, self.bound(name, before))
        nodes = {*mine, *self._graph.needed([node for node in mine if node in self._calling])}
        return [
            each
            for node in sorted(nodes)
            if node[0] in self.code.functions
            for each in self._versions(*node)
        ]

    def _versions(self, name: str, number: int) -> list[FunctionSummary]:
        """Return the functions that a cell surely defines under a name, else all of that name."""
        cell = self.def_uses.get(number)
        found = cell.functions.get(name) if cell is not None else None
        return found if found is not None else self.code.functions[name]

    def kept_to_be_called(self, number: int) -> list[tuple[str, frozenset[str]]]:
        """Return functions kept by objects that a cell uses, and the names that each changes."""
        if not self._sets_outer:
            return []
        used = self.def_uses[number].uses.keys() - self.code.functions.keys()
        return [
            (name, frozenset(self.code.settled[id(each)].effect.outer))
            for name in sorted(self._held_functions(used, is_called=True) - {*used})
            for each in self.code.functions[name]
            if id(each) in self.code.settled
        ]

    def tied(self, name: str, other: str) -> bool:
        """Return whether, by the cells' text, one name may be, hold or be a part of the other."""
        both = ((name, other), (other, name))
        return any(
            second in {each for each, _ in self._graph.taken_from(self._nodes_of(first))}
            for first, second in both
        )

    def _nodes_of(self, name: str) -> list[Node]:
        return [(name, number) for number in self._numbers(name)]

    def set_inside(self) -> set[str]:
        """Return the names that the notebook's functions may change or set."""
        return {name for each in self.code.settled.values() for name in each.effect.outer}

    # ------------------------------------------------------------------ what a cell changes

    def _effect(self, cell: DefUse) -> Effect:
        effect = Effect(setting=next(iter(cell.ambient), None))
        for name in sorted(self.code.imported_for_itself & cell.imports.keys())[:1]:
            effect.setting = effect.setting or f"import {name}"
        self.kinds.look_from(cell)
        for name, how in cell.changes.items():
            if name in cell.imports or (name in self.code.imports and name not in cell.defines):
                effect.setting = effect.setting or f"{name}…"
            else:
                effect.change([name], Change(how))
        if self.code.asks_subclasses:
            for each in cell.classes.values():
                effect.change([base[0] for base in each.bases], Change.ITEM)
        for call in cell.calls:
            effect.add(self._calls.of(call))
            called = CellValue(same=frozenset(call.chain[:1]))
            self._reached_functions(effect, [called, call.receiver, *call.given])
            if call.chain[-1] == "backward" and call.receiver is not None:
                computed = self.kinds.computed_from(call.receiver.mentioned)
                self._reached_functions(effect, [CellValue(same=frozenset(computed))])
            for name in {*call.chain[:1], *[each for value in call.given for each in value.same]}:
                effect.change(self._listeners.get(name, ()), Change.DEEP)
            word = call.chain[-1] if len(call.chain) == 1 else f".{call.chain[-1]}"
            effect.change(self._remembering.get(word, ()), Change.SHALLOW)
        for name in cell.changes:
            self._reached_functions(effect, [CellValue(same=frozenset([name]))])
            effect.change(self._listeners.get(name, ()), Change.DEEP)
        if self._ends and (cell.deletes or any(len(self.definers[n]) > 1 for n in cell.defines)):
            effect.change(self._ends, Change.DEEP)
        for root, method in self.code.implicit(cell):
            effect.add(self._calls.implicit(root, method))
        self._loaded(effect, cell)
        effect.add(self._calls.loops(cell))
        self._passed(effect, cell)
        for name in cell.uses:
            kinds = self.kinds.of_name(name)
            if not kinds.isdisjoint({"iterator", "loader"}):
                self._reached_functions(effect, [CellValue(same=frozenset([name]))])
            if "iterator" in kinds or ("growing" in kinds and name in cell.indexed):
                effect.change([name], Change.SHALLOW)
        self._called_inside(effect)
        effect.change_outer(effect.changes)
        outside = self.code.imports.keys()
        effect.changes = {k: v for k, v in effect.outer.items() if k not in outside}
        return effect

    def _called_inside(self, effect: Effect) -> None:
        """Note that an object calls the objects that it keeps: a trainer its model."""
        nodes = [(name, number) for name in effect.calls_held for number in self._numbers(name)]
        inside = {each for each, _ in self._graph.needed(nodes)} if nodes else set[str]()
        for name in inside - effect.calls_held:
            kinds = self.kinds.of_name(name)
            if any(each.startswith("own:") for each in kinds):
                self._calls.called_elsewhere(effect, [name], kinds)
            if "generator" in kinds and ".__call__" in self.code.functions:
                effect.change([name], Change.SHALLOW)  # a nameless object may draw from it

    def _passed(self, effect: Effect, cell: DefUse) -> None:
        """Note the random numbers drawn by iterating loaders, those inside objects included.

        A cell that uses a model counts as one that trains: it is reported and not included.
        """
        nodes = [(name, number) for name in effect.iterates for number in self._numbers(name)]
        for name, _ in self._graph.needed(nodes):
            effect.passes |= iteration.generators(self.kinds.of_name(name))
        if not effect.passes:
            return
        inner = [one for name in cell.uses for one in self.code.functions.get(name, ())]
        names = {*cell.uses, *[name for each in inner for name in each.uses]}
        uses_model = any(self.kinds.is_model(name) for name in names)
        (effect.draws_when_made if uses_model else effect.draws).update(effect.passes)

    def _loaded(self, effect: Effect, cell: DefUse) -> None:
        """Note that a loader reads elements of its data set and draws from its generator."""
        for loader in [each for each in cell.uses if "loader" in self.kinds.of_name(each)]:
            for name, _ in self._graph.needed([(loader, each) for each in self._numbers(loader)]):
                if "generator" in self.kinds.of_name(name):
                    effect.change([name], Change.SHALLOW)
                for method in ("__getitem__", "__iter__") if self.code.special else ():
                    effect.add(self._calls.implicit(name, method))

    def _reached_functions(self, effect: Effect, values: Iterable[CellValue | None]) -> None:
        """Note that an object may call functions that it holds: callbacks, hooks, lists of them."""
        if not self._holds_effects:
            return
        for number, value in enumerate(values):
            held = self._results.held(value)
            for name in self._held_functions(held.names, is_called=number == 0):
                for each in self._run_by(name):
                    settled = self.code.settled.get(id(each), CallSummary())
                    effect.change_outer(settled.effect.outer)
                    effect.draws |= settled.effect.draws

    def _held_functions(self, names: Iterable[str], *, is_called: bool) -> set[str]:
        nodes = [(name, number) for name in names for number in self._numbers(name)]
        found = self._graph.taken_from(nodes) if is_called else self._graph.needed(nodes)
        return {
            name
            for name, _ in found
            if name in self.code.functions
            and (name not in self.code.classes or (is_called and name not in names))
        }

    def _run_by(self, name: str) -> list[FunctionSummary]:
        """Return the functions that calling a name runs: of a class, those that make an object."""
        if name not in self.code.classes:
            return self.code.functions[name]
        family = self.code.family(name)
        return [
            each for hook in ("__init__", "__new__") for each in self.code.methods(hook, family)
        ]

    def _numbers(self, name: str) -> list[int]:
        return self.definers.get(name) or [_UNBOUND]

    # ------------------------------------------------------------------ objects and ties

    def _nodes(self, name: str, numbers: Iterable[int]) -> list[Node]:
        return [(name, number) for number in numbers] or [(name, _UNBOUND)]

    def _here(self, name: str, number: int) -> list[Node]:
        """Return the nodes of a name within a cell: its bindings above, and the cell's own."""
        cell = self.def_uses[number]
        own = [number] if name in cell.possible_definitions else []
        above = self.bound(name, number) if name in cell.uses or not own else []
        return self._nodes(name, [*above, *own])

    def _tie(self, number: int, cell: DefUse) -> None:
        for alias in cell.aliases:
            held = self._results.held(alias.value)
            held = held.as_inside() if alias.is_kept else held
            own = alias.target in cell.possible_definitions and not alias.is_kept
            nodes = [(alias.target, number)] if own else self._here(alias.target, number)
            self._add(nodes, held, number, self.kinds.is_data(alias.value))
        for names in listeners.linked(cell, self.code, self._results):
            linked = [node for name in sorted(names) for node in self._here(name, number)]
            for node in linked[:1]:
                self._graph.add(node, linked[1:])
        self._tie_figures(number, cell)

    def _tie_figures(self, number: int, cell: DefUse) -> None:
        """Tie ``fig`` and ``ax`` of ``fig, ax = plt.subplots()``: drawing on one changes the other.

        Functions made by one call are tied in the same way.
        """
        made: dict[int, Node] = {}
        for alias in cell.aliases:
            for call in alias.value.part_of_calls:
                if not self.kinds.of_result(call).isdisjoint({"axes", "bound"}):
                    node = (alias.target, number)
                    self._graph.add(node, [made.setdefault(id(call), node)])
        if current_figure.NAME not in cell.defines and current_figure.NAME not in cell.changes:
            return
        for alias in cell.aliases:
            for call in (*alias.value.calls, *alias.value.part_of_calls):
                if facts.makes_current(self.code.path(call) or ""):
                    self._graph.add((alias.target, number), self._here(current_figure.NAME, number))

    def _add(self, nodes: list[Node], held: HeldNames, number: int, is_data: bool) -> None:
        if not held.names:
            return
        outside = self.code.imports

        def tied(node: Node, names: frozenset[str]) -> list[Node]:
            inner = [name for name in names if name not in outside]
            others = [other for name in inner for other in self._here(name, number)]
            self.tied_pairs.update((node, other) for other in others)
            return [other for other in others if (node, other) not in self._apart]

        for node in nodes:
            part = tied(node, held.part)
            self._graph.add(
                node,
                tied(node, held.same),
                [] if is_data else part,
                tied(node, held.inside),
                tied(node, held.quiet),
                part if is_data else [],
            )

    def _mark(self, number: int) -> None:
        changes = {
            node: how
            for name, how in self.effects[number].changes.items()
            for node in self._here(name, number)
        }
        reached = self._graph.reached(changes)
        for node in reached:
            self._changers[node].append(number)
