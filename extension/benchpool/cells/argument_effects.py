"""Effects of calls on their arguments, and on the models that gradients flow to."""

from __future__ import annotations

from collections.abc import Iterable

from benchpool.cells import facts, known
from benchpool.cells.alias_graph import Change, HeldNames
from benchpool.cells.def_use import Called, CellValue
from benchpool.cells.effect import CallSummary, Effect
from benchpool.cells.iteration import Iteration
from benchpool.cells.kinds import Kinds, itself_or_kept
from benchpool.cells.own_code import OwnCode
from benchpool.cells.results import CallResults

_TO_KEYWORDS = frozenset(["out", "ax", "axes", "cax", "fig", "file", "buf", "fp", "buffer"])
_TRAINED = frozenset(["module", "layer", "object", "optimizer"])
_CALLED_BACK = frozenset(["callbacks", "callback"])
_REMEMBERING = ("BatchNorm", "Lazy")


class ArgumentEffects:
    """Effects on arguments in one scope: a cell, or the body of a function."""

    def __init__(self, code: OwnCode, kinds: Kinds, results: CallResults) -> None:
        self.code = code
        self.kinds = kinds
        self.results = results
        self._iteration = Iteration(code, kinds)

    def _change(self, effect: Effect, value: CellValue, how: Change) -> None:
        """Note that a value changes, if it can change."""
        held = self.results.named(value)
        functions = self.code.functions.keys() - self.code.classes.keys()
        outside = self.code.imports.keys() | functions
        clean = HeldNames(held.same - outside, held.part - outside, held.inside - outside)
        if value.literal == "data" or (how is Change.DEEP and self._is_loader(value)):
            return
        effect.change_value(clean, how)

    def _is_loader(self, value: CellValue) -> bool:
        return self.kinds.of(value) == {"loader"}

    def _keywords(self, effect: Effect, call: Called) -> None:
        for word, value in call.keywords:
            if word is None:
                continue
            if word in _TO_KEYWORDS:
                how = Change.DEEP if value.literal == "container" else Change.SHALLOW
                self._change(effect, value, how)
            elif word in _CALLED_BACK and not call.chain[-1][:1].isupper():
                self._change(effect, value, Change.DEEP)
            elif word == "inplace" and not value.is_false and self.code.path(call) is None:
                effect.change_value(self.results.held(call.receiver), Change.SHALLOW)
            elif (word.startswith("overwrite_") and not value.is_false) or (
                word == "copy" and value.is_false and not facts.only_shares(call.chain[-1])
            ):
                for each in call.arguments:
                    self._change(effect, each, Change.SHALLOW)

    def _functions_given(self, effect: Effect, call: Called) -> None:
        """Note that a function passed as an argument may be called with the other arguments."""
        for value in call.given:
            if value.bound is not None and value.part and value.part <= known.BUILTIN_TYPES:
                for other in call.given:  # ``map(list.append, lists, items)``
                    self._change(effect, other, Change.DEEP)
            known_by = (value.same | value.inside) & self.code.functions.keys()
            for function in [each for name in known_by for each in self.code.functions[name]]:
                settled = self.code.settled.get(id(function), CallSummary())
                effect.change_outer(settled.effect.outer)
                if settled.effect.changes:
                    effect.change_value(self.results.held(call.receiver), Change.DEEP)
                    for other in call.given:
                        if other is not value:
                            self._change(effect, other, Change.DEEP)

    def _trained(self, effect: Effect, call: Called) -> None:
        """Note that ``trainer.fit(model, data)`` trains those arguments that are models."""
        for value in call.given:
            kinds = self.kinds.of(value).union(*map(self.kinds.of_name, value.inside))
            if is_own(kinds) or not kinds.isdisjoint(_TRAINED):
                self._change(effect, value, Change.DEEP)

    def _backward(self, effect: Effect, call: Called) -> None:
        """Note that gradients go to the models and parameters that a loss was computed from."""
        values = [each for each in (call.receiver, *call.given) if each is not None]
        mentioned = frozenset[str]().union(*[each.mentioned for each in values])
        for name in self.kinds.computed_from(mentioned):
            kinds = itself_or_kept(self.kinds.of_name(name))
            trained = name in self.code.trainable or not kinds.isdisjoint({"module", "layer"})
            settings = {f"own:{each}" for each in self.code.filling.settings_only}
            if trained or is_own(kinds - settings):
                effect.change([name], Change.SHALLOW)

    def _drops(self, kinds: frozenset[str]) -> bool:
        """Return whether calling an object draws random numbers, as dropout does."""
        classes = [each.removeprefix("own:") for each in kinds if each.startswith("own:")]
        return "drops" in kinds or any(
            self.code.builds_with("Dropout", name=each) for each in classes
        )

    def _remembers(self, kinds: frozenset[str]) -> bool:
        """Return whether calling an object changes it, as batch normalisation does."""
        classes = [each.removeprefix("own:") for each in kinds if each.startswith("own:")]
        return any(self.code.builds_with(*_REMEMBERING, name=each) for each in classes)


def is_own(kinds: Iterable[str]) -> bool:
    """Return whether a value may be an object of one of the notebook's classes."""
    return any(each.startswith("own:") for each in kinds)
