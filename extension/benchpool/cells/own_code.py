"""Functions, classes and imports of a notebook, and the callees of a call."""

from __future__ import annotations

import sys
from collections.abc import Collection

from benchpool.cells import facts, filling, iteration, known, protocols
from benchpool.cells.def_use import Called, CellValue, Chain, ClassSummary, DefUse, FunctionSummary
from benchpool.cells.effect import CallSummary

_IN_PLACE = frozenset(["setter", "getter", "deleter"])
_EXPLICIT = frozenset(["__init__", "__new__", "__post_init__", "__call__", "__enter__", "__exit__"])
"""Methods whose calls are visible as such."""

_DESCRIBING = {"__getattr__": "__get__", "__setattr__": "__set__", "__delattr__": "__delete__"}
"""Further methods called when a descriptor defines how an attribute is read and set."""

_STANDARD = sys.stdlib_module_names | {"."}


class OwnCode:
    """Code that the notebook itself defines. Two functions of the same name both count."""

    def __init__(self, def_uses: Collection[DefUse]) -> None:
        self.functions: dict[str, list[FunctionSummary]] = {}
        self.classes: dict[str, list[ClassSummary]] = {}
        self.imports: dict[str, str] = {}
        self.settled: dict[int, CallSummary] = {}
        self._families: dict[str, frozenset[str]] = {}
        for each in def_uses:
            self.imports.update(each.imports)
            for name, found in each.functions.items():
                self.functions.setdefault(name, []).extend(found)
            for name, summary in each.classes.items():
                self.classes.setdefault(name, []).append(summary)
        self.trainable = {
            name
            for each in def_uses
            for call in each.calls
            if call.chain[-1] == "requires_grad_" and call.receiver is not None
            for name in call.receiver.same
        }
        classes = [each for of_name in self.classes.values() for each in of_name]
        self.bases = frozenset(base[0] for each in classes for base in each.bases)
        self._rename(def_uses)
        self._stars = sorted({each.star for each in def_uses if each.star}, key=facts.is_known)
        self._bound = known.PROVIDED.union(*[each.possible_definitions for each in def_uses])
        self._bound |= {name for found in self.functions.values() for each in found
                        for name in (*each.parameters, each.rest or "", *each.own)}  # fmt: skip
        special = [
            name.removeprefix(".")
            for name, found in self.functions.items()
            if name.startswith(".__") or name == ".write" or any(each.is_property for each in found)
        ]
        self.observing = frozenset(
            name.removeprefix(".")
            for name, found in self.functions.items()
            if any(
                facts.registers(by[-1]) for each in found if each.owner for by in each.decorators
            )
        )
        self.special = frozenset(special).union(self.observing) - _EXPLICIT
        self.accessors = self._accessors(def_uses)
        self.asks_subclasses = any(
            call.chain[-1] == "__subclasses__" for each in def_uses for call in each.calls
        )
        every = [each for found in self.functions.values() for each in found]
        self.filling = filling.of(def_uses, every, self.classes)
        self.fields: dict[str, list[CellValue]] = {}
        for alias in [each for function in every if function.owner for each in function.aliases]:
            if alias.target.startswith("self.") and not alias.is_kept:
                self.fields.setdefault(alias.target[5:], []).append(alias.value)
        scopes: list[DefUse | FunctionSummary] = [*def_uses, *every]
        self.has_handlers = any(
            call.chain[-1] in {"addHandler", "addFilter"} for each in scopes for call in each.calls
        )
        self.has_closures = any(each.keeps_state for each in every)
        self.rebound = frozenset[str]().union(*[each.rebinds for each in every])
        self.imported_for_itself = self._imported_for_itself(def_uses)
        modules = {path.partition(".")[0] for path in self.imports.values()}
        self.has_layers = not modules.isdisjoint({"keras", "tensorflow", "tf_keras"})
        self.draws_by_iteration = iteration.any_draws(self, scopes)
        self.loading = iteration.makers(self) if self.draws_by_iteration else {}

    def _accessors(self, def_uses: Collection[DefUse]) -> frozenset[str]:
        """Return the classes that a decorator registers as an attribute of a library's objects."""
        made = [
            value.same
            for each in def_uses
            for call in each.calls
            if any(word.startswith("register_") for word in call.chain)
            for value in call.arguments[:1]
        ]
        return frozenset[str]().union(*made) & self.classes.keys()

    def _imported_for_itself(self, def_uses: Collection[DefUse]) -> frozenset[str]:
        """Return unused imports of unknown libraries: they are imported for their side effect."""
        inner = [each for found in self.functions.values() for each in found]
        used = {name for each in def_uses for name in each.uses}
        used |= {name for each in inner for name in each.uses}
        return frozenset(
            name
            for name, path in self.imports.items()
            if name not in used
            and not facts.is_known(path)
            and path.partition(".")[0] not in _STANDARD
        )

    def is_standard(self, path: str) -> bool:
        """Return whether a path belongs to Python's standard library."""
        return path.partition(".")[0] in _STANDARD

    def path(self, call: Called) -> str | None:
        """Return the full dotted path of a call of an imported object, or None."""
        first = call.chain[0]
        if "()" in call.chain or "[]" in call.chain:
            return None
        if first not in self.imports:
            return self._starred(call.chain) if self._stars else None
        return ".".join([self.imports[first], *call.chain[1:]])

    def dotted(self, chain: Chain) -> str:
        """Return a dotted name with its first word replaced by what it was imported as."""
        return ".".join([self.imports.get(chain[0], ""), *chain[1:]])

    def is_given_away(self, function: FunctionSummary) -> bool:
        """Return whether a decorator may register a function to be called by another name.

        Decorators of known libraries and of the standard library do not.
        """
        return any(
            by[-1] not in _IN_PLACE and by[0] not in known.PROVIDED
            for by in function.decorators
            if not facts.is_known(self.dotted(by))
        )

    def _starred(self, chain: Chain) -> str | None:
        """Return the path of a name that no cell binds: a ``from … import *`` must define it."""
        known_as = facts.given_by_star(chain[0])
        if chain[0] in self._bound or (known_as is None and len(chain) > 1):
            return None
        return ".".join([known_as or f"{self._stars[0]}.{chain[0]}", *chain[1:]])

    def _rename(self, def_uses: Collection[DefUse]) -> None:
        """Treat names as imports if they only stand for a part of a known library."""
        for each in def_uses:
            for name, chain in each.renames.items():
                path = ".".join([self.imports.get(chain[0], ""), *chain[1:]])
                if not facts.is_known(path):
                    continue
                makers = [one for one in def_uses if name in one.possible_definitions]
                if makers == [each]:
                    self.imports[name] = path

    def implicit(self, of: DefUse | FunctionSummary) -> list[protocols.Use]:
        """Return the uses by which Python implicitly calls methods of the notebook's classes."""
        if not self.special:
            return []
        if of.implicit is None:
            instance = of.instance if isinstance(of, FunctionSummary) else None
            is_cell = isinstance(of, DefUse)
            of.implicit = protocols.uses(of.body, instance, is_cell=is_cell)
        found = {each for each in of.implicit if each[1] in self.special}
        if not self.special.isdisjoint(_DESCRIBING.values()):
            found.update((root, _DESCRIBING[hook]) for root, hook in of.implicit
                         if hook in _DESCRIBING and _DESCRIBING[hook] in self.special)  # fmt: skip
        if self.observing:  # setting a trait calls its observers
            found.update(
                (root, method)
                for root, hook in of.implicit
                if hook == "__setattr__"
                for method in self.observing
            )
        return sorted(found)

    def family(self, name: str) -> frozenset[str]:
        """Return a class and its bases that the notebook defines."""
        if name not in self._families:
            self._families[name] = self._family(name)
        return self._families[name]

    def _family(self, name: str) -> frozenset[str]:
        found: set[str] = set()
        waiting = [name]
        while waiting:
            each = waiting.pop()
            if each not in found and each in self.classes:
                found.add(each)
                waiting += [base[0] for one in self.classes[each] for base in one.bases]
        return frozenset(found)

    def has_foreign_base(self, name: str) -> bool:
        """Return whether a class inherits from a class that the notebook does not define."""
        return any(
            base[0] not in self.classes and base != ("object",)
            for each in self.family(name)
            for one in self.classes[each]
            for base in one.bases
        )

    def builds_with(self, *layers: str, name: str) -> bool:
        """Return whether a class is built with one of these layers (``BatchNorm``, ``Dropout``)."""
        calls = [
            call for each in self.methods("__init__", self.family(name)) for call in each.calls
        ]
        paths = [self.path(call) or "" for call in calls]
        return any(layer in path for path in paths for layer in layers)

    def methods(self, name: str, owners: frozenset[str] | None) -> list[FunctionSummary]:
        """Return the methods of a name, in the given classes or (None) in all."""
        found = self.functions.get(f".{name}", [])
        return [each for each in found if owners is None or each.owner in owners]

    def called(self, call: Called, kinds: frozenset[str]) -> list[FunctionSummary]:
        """Return the functions of the notebook that a call may run.

        Args:
            call: The call.
            kinds: Kinds of the method's receiver, or of the variable that is called.
        """
        name = call.chain[-1]
        if len(call.chain) == 1:
            if name.startswith(("self.", "cls.")):
                return self.methods(name.partition(".")[2], None)
            if name in self.classes:
                family = self.family(name)
                return [
                    *self.methods("__init__", family),
                    *self.methods("__post_init__", family),
                    *self.methods("__new__", family),
                    *self._of_metaclass(name, "__call__"),
                ]
            if name in self.functions:
                return self.functions[name]
            return self.called_as_object(kinds)
        if name == "()":  # a decorator with arguments: its summary covers its result
            return self.functions.get(call.chain[0], [])
        if name in _DESCRIBING.values():
            return self.methods(name, None)
        if name == "__init_subclass__":
            return [
                *self.methods(name, None),
                *self._of_metaclass(call.chain[0], "__new__", "__init__"),
            ]
        if name == "__init__" and call.chain[0] in self.classes:
            return self.methods(name, self.family(call.chain[0]))
        if call.chain[:2] == ("super", "()"):
            return self.methods(name, self.bases)
        if not kinds or "?" in kinds:
            return self.methods(name, None)
        found = [each for kind in kinds for each in self._of_object(kind, name)]
        return found or self.methods(name, self.accessors)

    def called_as_object(self, kinds: frozenset[str]) -> list[FunctionSummary]:
        """Return the functions that calling an object may run, by its kinds."""
        return [each for kind in kinds for each in self._of_object(kind, None)]

    def _of_metaclass(self, name: str, *hooks: str) -> list[FunctionSummary]:
        """Return the metaclass methods that run when a class is derived or called."""
        classes = [one for each in self.family(name) for one in self.classes[each]]
        made_by = {each.metaclass for each in classes} - {None}
        families = [self.family(str(each)) for each in made_by]
        return [
            method for family in families for hook in hooks for method in self.methods(hook, family)
        ]

    def _of_object(self, kind: str, name: str | None) -> list[FunctionSummary]:
        if not kind.startswith("own:"):
            return []
        family = self.family(kind.removeprefix("own:"))
        if name is not None:
            return self.methods(name, family)
        return [*self.methods("__call__", family), *self.methods("forward", family)]
