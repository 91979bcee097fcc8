"""Kinds of the values that names hold, as far as their definitions show."""

from __future__ import annotations

from collections.abc import Iterable

from benchpool.cells import facts, iteration, known
from benchpool.cells.def_use import Alias, Called, CellValue, DefUse, FunctionSummary
from benchpool.cells.own_code import OwnCode

Kind = str
"""One of ``facts.toml``'s kinds, ``data``, ``container``, ``iterator``, ``bound`` (a callable that
changes the object it is bound to), ``object`` of an unknown class, ``own:Net`` for an object of a
class of the notebook, ``keeps bound`` and ``keeps own:Net`` for a container of these, or ``?``.
"""

_KEEPS = "keeps "

_MODULES = frozenset(["module", "drops", "remembers"])
_ITERATORS = frozenset(["iter", "zip", "map", "filter", "enumerate", "reversed"])
_REMEMBERED = frozenset(["max_norm", "track_running_stats"])
"""Arguments of layers that make a call of the layer change it."""

_CONTAINERS = frozenset(["list", "dict", "set", "tuple", "sorted", "bytearray"])
_NUMBERS = frozenset(
    ["len", "sum", "float", "int", "str", "bool", "abs", "round", "range", "repr", "hash", "id"]
)


class Kinds:
    """Kinds of names in one scope. Names that it does not bind are looked up in the outer scope."""

    def __init__(self, aliases: Iterable[Alias], code: OwnCode, around: Kinds | None) -> None:
        self._other_names: set[str] = set()
        self._values: dict[str, list[CellValue]] = {}
        self._put_inside: dict[str, list[CellValue]] = {}
        for each in aliases:
            self._other_names |= (each.value.same | each.value.inside) - {each.target}
            if each.is_kept:
                self._put_inside.setdefault(each.target, []).append(each.value)
            elif each.target not in each.value.same:
                self._values.setdefault(each.target, []).append(each.value)
        self._here: dict[str, list[CellValue]] = {}
        self._code = code
        self._around = around
        self._known: dict[str, frozenset[Kind]] = {}

    def trusts(self, call: Called) -> bool:
        """Return whether a method that no library is known to have surely belongs to the notebook.

        This holds in the body of a function, whose parameters may be objects of any of its classes.
        """
        return self._around is not None and facts.method(call.chain[-1]) == "unknown"

    def of_name(self, name: str) -> frozenset[Kind]:
        """Return all kinds that a name may have; empty if unknown."""
        found = self._known.get(name)
        if found is None:
            self._known[name] = frozenset()  # for a name that is computed from itself
            values = self._values.get(name)
            if values is not None:
                found = frozenset[Kind]().union(*[self.of(each) for each in values])
            else:
                found = self._around.of_name(name) if self._around is not None else frozenset()
            self._known[name] = found
        return found

    def is_fixed(self, name: str) -> bool:
        """Return whether a name stands for a number or string, which never changes."""
        values = self._values.get(name)
        if values is None:
            return self._around is not None and self._around.is_fixed(name)
        return name not in self._code.rebound and all(each.is_fixed for each in values)

    def holds_fixed(self, name: str) -> bool:
        """Return whether a name stands for a list or dict of only numbers and strings."""
        values = self._values.get(name)
        if values is None:
            return self._around is not None and self._around.holds_fixed(name)
        whole = all(each.holds_fixed for each in values) and name not in self._code.filling.fed
        return whole and self._is_filled_with_fixed(name)

    def is_model(self, name: str) -> bool:
        """Return whether a name may stand for a model, or for an object that keeps one."""
        kinds = itself_or_kept(self.of_name(name))
        own = [each.removeprefix("own:") for each in kinds if each.startswith("own:")]
        return not kinds.isdisjoint({"module", "layer", "optimizer"}) or any(
            self._code.methods("forward", self._code.family(each)) for each in own
        )

    def has_settings(self, name: str) -> bool:
        """Return whether a name stands for objects that hold only numbers and strings."""
        own = {each.removeprefix("own:") for each in self.of_name(name)}
        return (
            bool(own)
            and own <= self._code.filling.settings_only
            and self._is_filled_with_fixed(name)
        )

    def _is_filled_with_fixed(self, name: str) -> bool:
        """Return whether everything put into a name's object is known and immutable."""
        by_others = self._code.filling.fills_arguments or name in self._other_names
        if by_others or name in self._code.rebound:
            return False
        return all(each.is_fixed for each in self._put_inside.get(name, ()))

    def of(self, value: CellValue) -> frozenset[Kind]:
        """Return the kinds of a value."""
        if value.bound is not None:
            return frozenset(["bound"])
        keeps_method = self._has_method(value)
        if value.literal in {"container", "iterator"}:
            kept = self._objects_in(value)
            return kept | {value.literal, *(["keeps bound"] if keeps_method else [])}
        found: set[Kind] = set() if value.literal is None else {value.literal}
        if value.operator in self._code.special:
            owners = [each.owner for each in self._code.methods(value.operator, None)]
            found = {f"own:{each}" for each in owners} | {"?"}
        for call in value.calls:
            found |= self.of_result(call) or {"?"}
        for name in value.same:
            found |= self.of_name(name) or {"?"}
        for name in value.part:
            found |= _of_part(self.of_name(name))
        for call in value.part_of_calls:
            found |= _of_part(self.of_result(call))
        if keeps_method:
            found.add("bound")
        return frozenset(found)

    def _objects_in(self, value: CellValue) -> frozenset[Kind]:
        """Return the kinds of objects of the notebook's own classes that a container keeps."""
        results = [self.of_result(call) for call in value.calls]
        kinds = frozenset[Kind]().union(*results, *map(self.of_name, value.inside))
        own = frozenset(f"{_KEEPS}{each}" for each in kinds if each.startswith("own:"))
        trained = frozenset([f"{_KEEPS}module"] if "module" in kinds else [])
        drawn = frozenset(f"{_KEEPS}{each}" for each in iteration.passed_on([kinds]))
        return own | trained | drawn | frozenset(each for each in kinds if each.startswith(_KEEPS))

    def _objects_kept(self, value: CellValue) -> frozenset[Kind]:
        """Return the kinds of a container that keeps a value, for the notebook's own classes."""
        own = [each for each in self.of(value) if each.removeprefix(_KEEPS).startswith("own:")]
        return frozenset(each if each.startswith(_KEEPS) else f"{_KEEPS}{each}" for each in own)

    def _has_method(self, value: CellValue) -> bool:
        """Return whether a value is or keeps an uncalled method that may change objects."""
        return any(
            each in facts.CHANGING_METHODS
            or f".{each}" in self._code.functions
            or facts.method(each) == "unknown"
            for each in value.attributes
        )

    def is_data(self, value: CellValue) -> bool:
        """Return whether a value is surely data, which no holder changes."""
        kinds = self.of(value)
        return bool(kinds) and kinds <= {"data", "pure"}

    def of_receiver(self, call: Called) -> frozenset[Kind]:
        """Return the kinds of a method's receiver, or of the variable that is called."""
        if call.receiver is not None:
            return self.of(call.receiver)
        return self.of_name(call.chain[0])

    def of_field(self, call: Called) -> frozenset[Kind]:
        """Return the kinds of a called field if objects keep modules in it, else an empty set.

        The field is found by name alone, so every class that sets a field of this name must keep a
        module.
        """
        kinds = frozenset[Kind]().union(*map(self.of, self._code.fields.get(call.chain[-1], ())))
        are_modules = all(each.startswith("own:") or each in _MODULES for each in kinds)
        return kinds if are_modules else frozenset()

    def of_result(self, call: Called) -> frozenset[Kind]:
        """Return the kinds that a call may return; empty if unknown."""
        path = self._code.path(call)
        found = self._of_library(call, path) if path is not None else self._of_own(call)
        if not self._code.draws_by_iteration:
            return found
        drawn = self._drawn(call, path)
        return found | drawn | ({"?"} if drawn and not found else frozenset())

    def _drawn(self, call: Called, path: str | None) -> frozenset[Kind]:
        """Return the kinds of a result that draws when it, or a part of it, is iterated."""
        name = call.chain[-1]
        made = iteration.of_call(call, path)
        if path is None and not made:
            made = self._code.loading.get(name if len(call.chain) == 1 else f".{name}", made)
            made = made | frozenset(f"{_KEEPS}{each}" for each in made)
        passes = facts.passes_on(path) if path is not None else name in known.PASSING
        if passes or (path is None and facts.method(name) == "unknown" and len(call.chain) > 1):
            made |= iteration.passed_on(map(self.of, call.given))
        if self._code.has_layers and call.receiver is not None:
            made |= iteration.of_dataset(call, self.of(call.receiver))
        return made

    def _of_own(self, call: Called) -> frozenset[Kind]:
        """Return the kinds of the result of a builtin, a method or a function of the notebook."""
        if len(call.chain) == 1:
            return self._of_plain(call)
        receiver, name = self.of_receiver(call), call.chain[-1]
        if name == "()":
            makers = self._code.functions.get(call.chain[0], [])
            return frozenset(["bound"] if any(each.keeps_state for each in makers) else [])
        if methods := self._code.called(call, receiver):
            is_bound = any(each.keeps_state and each.gives_function for each in methods)
            return frozenset(["bound"] if is_bound else [])
        rule = facts.method(name)
        if "axes" in receiver:
            return frozenset(["axes"])
        if name in {"copy", "deepcopy", "clone"}:
            return receiver
        if rule == "own":
            return frozenset(["data"]) if name.startswith("fit_") else receiver
        if rule == "alone":
            return receiver
        if rule == "reading":
            return frozenset(["data"])
        if name in {"items", "values"} and any(each.startswith(_KEEPS) for each in receiver):
            return receiver
        return _of_part(receiver) if rule == "views" else frozenset()

    def _of_library(self, call: Called, path: str) -> frozenset[Kind]:
        words = {word for word, value in call.keywords if value.is_false}
        if "copy" in words:
            return frozenset(["writes"])
        if any(word == "requires_grad" and word not in words for word, _ in call.keywords):
            return frozenset(["module"])
        fact = facts.function(path)
        kind = fact.kind
        if kind == "splitter" and not _draws(call, path):
            kind = None
        found = {kind} if kind else set()
        if not fact.is_known and fact.result == "keeps":
            found.add("object")
        elif not fact.is_known and not self._code.is_standard(path):
            found |= {"foreign", "?"}
        if kind == "drops":
            found.add("module")
        if kind == "module":
            made = [self.of_result(each) for value in call.given for each in value.calls]
            found |= frozenset[str]().union(*made) & {"remembers", "drops"}
            found |= frozenset[str]().union(*map(self._objects_kept, call.given))
        keeps = any(word in _REMEMBERED and not value.is_false for word, value in call.keywords)
        if kind == "module" and ("BatchNorm" in path or keeps):
            found.add("remembers")
        return frozenset(found)

    def computed_from(self, names: Iterable[str]) -> set[str]:
        """Return all names from which the given names were computed, themselves included."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                for value in self._here.get(name, self._values.get(name, [])):
                    waiting += value.mentioned
                waiting += self._code.filling.put_into.get(name, ())
                for function in self._code.functions.get(name, ()):
                    waiting += function.uses
        return found

    def look_from(self, cell: DefUse) -> None:
        """Use the values that a cell surely binds to its names (``loss``)."""
        self._here = {}
        for each in cell.aliases:
            if not each.is_kept and each.target in cell.defines:
                self._here.setdefault(each.target, []).append(each.value)

    def _makes_parameters(self, function: FunctionSummary) -> bool:
        """Return whether a function makes tensors that receive gradients, and returns a value."""
        return bool(function.returns) and any(
            call.chain[-1] in {"requires_grad_", "Parameter"}
            or any(word == "requires_grad" and not value.is_false for word, value in call.keywords)
            for call in function.calls
        )

    def _of_plain(self, call: Called) -> frozenset[Kind]:
        name = call.chain[0]
        if name in self._code.classes:
            return frozenset([f"own:{name}"])
        functions = self._code.functions.get(name)
        if functions:
            if any(each.yields for each in functions):
                return frozenset(["iterator"])
            if any(self._makes_parameters(each) for each in functions):
                return frozenset(["module"])
            return frozenset(["bound"] if any(each.keeps_state for each in functions) else [])
        if name in _ITERATORS:
            return frozenset(["iterator"])
        if name in _CONTAINERS:
            return frozenset(["container"])
        if name in _NUMBERS:
            return frozenset(["data"])
        called = self.of_name(name)
        if "layer" in called:
            return frozenset(["layer"])
        return (
            frozenset(["data"])
            if called and called <= {"module", "pure", "data", "remembers", "drops"}
            else frozenset()
        )


def itself_or_kept(kinds: frozenset[Kind]) -> frozenset[Kind]:
    """Return the kinds, and the kinds of what a container keeps."""
    return kinds | frozenset(each.removeprefix(_KEEPS) for each in kinds)


def _draws(call: Called, path: str) -> bool:
    """Return whether a data splitter draws from the global random generator."""
    words = dict(call.keywords)
    shuffles = "shuffle" in words and not words["shuffle"].is_false
    return (shuffles or "Shuffle" in path) and "random_state" not in words


_PASSED_ON = {
    "bound": "bound",
    "data": "data",
    "axes": "axes",
    "module": "module",
    "layer": "layer",
    "pure": "data",
    "foreign": "foreign part",
}


def _of_part(whole: frozenset[Kind]) -> frozenset[Kind]:
    kept = {each.removeprefix(_KEEPS) for each in whole if each.startswith(_KEEPS)}
    rest = {each for each in whole if not each.startswith(_KEEPS)}
    found = {*kept, *(_PASSED_ON.get(each, "?") for each in rest or ({"?"} - kept))}
    return frozenset(found | ({"?"} if "foreign part" in found else set()))
