"""Results of calls: the names that a result is, is a part of, or keeps."""

from __future__ import annotations

from collections.abc import Iterable

from benchpool.cells import facts, known
from benchpool.cells.alias_graph import NOTHING, HeldNames
from benchpool.cells.def_use import INSTANCES, LOGGERS, Called, CellValue, FunctionSummary
from benchpool.cells.effect import CallSummary
from benchpool.cells.kinds import Kinds
from benchpool.cells.own_code import OwnCode

_LIVE = frozenset(["keys", "items", "values"])
"""Methods whose result also shows later changes."""
_JOINING = frozenset(["__add__", "__or__", "__mul__"])
"""Operators whose result contains the elements of their operands (lists and dicts)."""


class CallResults:
    """Values of one scope, with calls followed."""

    def __init__(self, code: OwnCode, kinds: Kinds) -> None:
        self.code = code
        self.kinds = kinds
        self._known: dict[int, HeldNames] = {}
        self._changeable: dict[tuple[HeldNames, bool], HeldNames] = {}
        self._fields: dict[str, frozenset[str]] = {}

    def named(self, value: CellValue) -> HeldNames:
        """Return the names in a value, including numbers and strings: a string may name a file."""
        found = self.held(value)
        return found | HeldNames(value.same, value.part, value.inside)

    def held(self, value: CellValue | None) -> HeldNames:
        """Return the names in a value that can change."""
        if value is None:
            return NOTHING
        if value.is_fixed:
            return NOTHING
        found = HeldNames(value.same, value.part, value.inside)
        if value.bound is None and (value.same or value.part or value.inside):
            found = self._without_fixed(found, by_name=bool(value.attributes))
        if value.operator in self.code.special:
            found |= HeldNames(inside=value.mentioned)
        if value.operator in _JOINING:
            lists = {each for each in value.mentioned if "container" in self.kinds.of_name(each)}
            found |= self._without_fixed(HeldNames(inside=frozenset(lists)), by_name=False)
        for call in value.calls:
            made = self.of(call)
            found |= made.as_inside() if value.literal in {"container", "iterator"} else made
        for call in value.part_of_calls:
            found |= self.of(call).as_part()
        return found

    def _without_fixed(self, held: HeldNames, *, by_name: bool) -> HeldNames:
        """Return what is held without numbers and strings, alone or as parts of containers.

        ``by_name``: the part is an attribute, so it may be a method of a list.
        """
        found = self._changeable.get((held, by_name))
        if found is None:
            fixed = {name for name in held.names if self.kinds.is_fixed(name)}
            holds = self.kinds.has_settings if by_name else self.kinds.holds_fixed
            taken = {name for name in held.part if holds(name)}
            found = HeldNames(
                held.same - fixed, held.part - fixed - taken, held.inside - fixed, held.quiet
            )
            self._changeable[held, by_name] = found
        return found

    def given(self, call: Called) -> HeldNames:
        """Return the names held by all arguments of a call."""
        return _joined(self.held(each) for each in call.given)

    def of(self, call: Called) -> HeldNames:
        """Return the names held by the result of a call."""
        found = self._known.get(id(call))
        if found is None:
            self._known[id(call)] = NOTHING
            found = self._known[id(call)] = self._of(call)
        return found

    def _of(self, call: Called) -> HeldNames:
        path = self.code.path(call)
        if path is not None and facts.is_logger(path):
            return HeldNames(same=frozenset([LOGGERS]))
        if path is not None:
            return self._of_library(call, facts.function(path).result)
        if len(call.chain) == 1:
            return self._of_plain(call)
        kinds = self.kinds.of_receiver(call)
        mine = self.code.called(call, kinds)
        found = _joined(self._of_own(call, each) for each in mine)
        is_known = bool(kinds) and "?" not in kinds
        if call.chain[-1] not in {"()", "[]"} and mine and (is_known or self.kinds.trusts(call)):
            return found
        if not mine and facts.method(call.chain[-1]) == "unknown":
            modules = self.kinds.of_field(call)
            if modules:
                functions = self.code.called_as_object(modules)
                return _joined(self._of_own(call, each) for each in functions)
        return found | self._of_method(call, kinds)

    def _of_library(self, call: Called, result: facts.Result) -> HeldNames:
        if result == "new" and _may_share(call):
            return self.given(call) | self.given(call).as_part()
        if result == "quietly" and _may_share(call):
            return self.given(call).as_part()
        if result == "new":
            return NOTHING
        if result == "quietly":
            return self.given(call).as_quiet()
        if result == "keeps":
            return self.kept(call)
        given = self.given(call)
        return given | given.as_part()

    def kept(self, call: Called) -> HeldNames:
        """Return what a holder of the call's arguments holds; read-only data as ``quiet``."""
        return _joined(
            self.held(each).as_quiet() if self.kinds.is_data(each) else self.held(each).as_inside()
            for each in call.given
        )

    def _of_plain(self, call: Called) -> HeldNames:
        name = call.chain[0]
        kinds = self.kinds.of_name(name)
        if name == "super":
            return HeldNames(same=frozenset(["self"]))
        if name in self.code.classes:
            return self._of_class(call, name)
        mine = self.code.called(call, kinds)
        if mine:
            found = _joined(self._of_own(call, each) for each in mine)
            late = any(each.yields or each.gives_function for each in mine)
            return found | HeldNames(quiet=frozenset([name])) if late else found
        if name in known.READING_FUNCTIONS:
            given = self.given(call)
            if name in known.COPYING:
                return given.as_inside()
            return given.as_part() if name in known.PASSING else NOTHING
        if "layer" in kinds or (self.code.has_layers and (not kinds or "?" in kinds)):
            return HeldNames(inside=frozenset([name])) | self.given(call).as_inside()
        if kinds and "?" not in kinds and "bound" not in kinds:
            return NOTHING
        return self.given(call).as_part()

    def _of_class(self, call: Called, name: str) -> HeldNames:
        """Return what a new object holds: its arguments, as ``quiet`` if no method changes them."""
        made = self.code.called(call, frozenset())
        found = HeldNames(quiet=frozenset([name]))
        made_before = self.code.methods("__new__", self.code.family(name))
        if (
            made_before or name in self.code.filling.filled_classes
        ):  # an older object, or the list of its class
            found |= HeldNames(part=frozenset([name]))
        holds = frozenset[str]().union(
            *[one.holds for each in self.code.family(name) for one in self.code.classes[each]]
        )
        found |= HeldNames(inside=holds - self.code.imports.keys() - self.code.functions.keys())
        foreign = self.code.has_foreign_base(name)
        if not made:
            return found | self.kept(call)
        changed = self._changed_fields(name)
        delegates = bool(self.code.methods("__getattr__", self.code.family(name)))
        for each in made:
            settled = self.code.settled.get(id(each), CallSummary())
            for target, held in settled.effect.keeps.items():
                field = target.partition(".")[2] if target.startswith("self") else None
                kept = self.bound(call, each, held)
                if field is None:
                    if any(_is_self(name) for name in held.names):  # an older object keeps it
                        found |= HeldNames(part=self.argument(call, each, target).reached)
                    continue
                loud = field in changed or foreign or delegates
                found |= kept.as_inside() if loud else kept.as_quiet()
        if foreign and not any(self.code.settled.get(id(each)) for each in made):
            found |= self.kept(call)
        data = _joined(self.held(each) for each in call.given if self.kinds.is_data(each))
        return HeldNames(inside=found.inside - data.names, quiet=found.names) if foreign else found

    def _changed_fields(self, name: str) -> frozenset[str]:
        found = self._fields.get(name)
        if found is None:
            found = self._fields[name] = self._find_changed_fields(name)
        return found

    def _find_changed_fields(self, name: str) -> frozenset[str]:
        family = self.code.family(name)
        return frozenset(
            field
            for methods in self.code.functions.values()
            for each in methods
            if each.owner is not None
            and (each.owner in family or family & self.code.family(each.owner))
            for field in self.code.settled.get(id(each), CallSummary()).fields
            if field
        )

    def _of_own(self, call: Called, function: FunctionSummary) -> HeldNames:
        settled = self.code.settled.get(id(function))
        return self.bound(call, function, settled.returns) if settled is not None else NOTHING

    def bound(self, call: Called, function: FunctionSummary, held: HeldNames) -> HeldNames:
        """Return names held in terms of a function's parameters, translated to a call's names."""
        found = NOTHING
        for names, turn in (
            (held.same, lambda each: each),
            (held.part, HeldNames.as_part),
            (held.inside, HeldNames.as_inside),
            (held.quiet, HeldNames.as_quiet),
        ):
            for name in names:
                found |= turn(self.argument(call, function, name))
        return found

    def argument(self, call: Called, function: FunctionSummary, name: str) -> HeldNames:
        """Return what a parameter, ``self`` or a name of the notebook stands for in a call."""
        if name in INSTANCES:
            return self._receiver(call)
        if name.partition(".")[0] in INSTANCES:
            return self._receiver(call).as_part()
        values = arguments_of(call, function).get(name)
        if values is not None:
            return _joined(self.held(each) for each in values)
        return NOTHING if name in function.own else HeldNames(same=frozenset([name]))

    def _receiver(self, call: Called) -> HeldNames:
        if call.receiver is not None:
            return self.held(call.receiver)
        name = call.chain[0]
        if name.startswith(("self.", "cls.")) or name in {"super"}:
            return HeldNames(same=frozenset([name.partition(".")[0]]))
        is_made = name in self.code.classes
        return NOTHING if is_made else HeldNames(same=frozenset([name]))

    def _of_method(self, call: Called, kinds: frozenset[str]) -> HeldNames:
        name = call.chain[-1]
        rule = facts.method(name)
        receiver = self.held(call.receiver)
        if "axes" in kinds:  # a line, bars: changes to them are visible there
            return receiver.as_part()
        if rule == "reading" and _may_share(call):
            return receiver.as_part()
        if facts.looks_later(name):
            return receiver.as_quiet()
        if rule == "reading":
            is_open = facts.may_find(name) and (not kinds or "?" in kinds)
            return receiver.as_part() if is_open else NOTHING
        if "data" in kinds and rule == "unknown" and len(kinds) == 1:
            return receiver.as_part()
        if name in {"copy", "deepcopy"}:
            return receiver.as_inside()
        if rule == "own":
            return NOTHING if name.startswith("fit_") else receiver
        if rule == "alone":
            return receiver | receiver.as_part()
        if name in _LIVE:
            return HeldNames(receiver.same, receiver.part | receiver.inside, quiet=receiver.quiet)
        if rule in {"views", "taking"}:
            return receiver.as_part()
        if rule == "keeping":
            return receiver.as_part() | self.given(call).as_part()
        return receiver | receiver.as_part() | self.given(call).as_part()


def _is_self(name: str) -> bool:
    return name.partition(".")[0] == "self"


def _may_share(call: Called) -> bool:
    """Return whether ``copy=`` may let the result share the data of the arguments."""
    return any(
        word == "copy" and (value.is_false or value.literal != "data")
        for word, value in call.keywords
    )


def arguments_of(call: Called, function: FunctionSummary) -> dict[str, list[CellValue]]:
    """Return the values that a call passes to each parameter of a function."""
    found: dict[str, list[CellValue]] = {name: [] for name in function.parameters}
    if function.rest is not None:
        found[function.rest] = []
    for position, value in enumerate(call.arguments):
        inside = position < len(function.parameters)
        name = function.parameters[position] if inside else function.rest
        if name is not None:
            found.setdefault(name, []).append(value)
    for word, value in call.keywords:
        for name in [word] if word in found else list(found):
            found[name].append(value)
    return found


def _joined(every: Iterable[HeldNames]) -> HeldNames:
    found = NOTHING
    for each in every:
        if each is not NOTHING:
            found |= each
    return found
