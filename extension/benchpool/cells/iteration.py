"""Objects that draw random numbers each time they are iterated, such as data loaders.

A pass over a loader draws from torch's generator, in the notebook's own loops, in its functions and
in the calls that receive the loader. Kinds have the form ``passes torch``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from benchpool.cells import facts
from benchpool.cells.def_use import INSTANCES, Called, CellValue, DefUse, FunctionSummary
from benchpool.cells.effect import Effect

if TYPE_CHECKING:
    from benchpool.cells.kinds import Kinds
    from benchpool.cells.own_code import OwnCode

_PASSES = "passes "
_SHUFFLED = frozenset([f"{_PASSES}tensorflow"])
_ON_DATASETS = frozenset(
    [
        *("batch", "prefetch", "map", "repeat", "cache", "take", "skip", "filter", "unbatch"),
        *("enumerate", "as_numpy_iterator", "with_options", "ragged_batch", "padded_batch"),
    ]
)
"""Methods of TensorFlow's data sets whose result shuffles if the data set does."""

_NOT_ITERATING = frozenset(["len", "print", "isinstance", "type", "id", "repr", "hasattr", "vars"])


def of_call(call: Called, path: str | None) -> frozenset[str]:
    """Return the kinds of a call's result if a pass over it draws, else an empty set."""
    if any(word == "generator" and not value.is_false for word, value in call.keywords):
        return frozenset()
    found = facts.draws_when_iterated(path or ".".join(call.chain))
    return frozenset(f"{_PASSES}{each}" for each in found)


def passed_on(kinds: Iterable[frozenset[str]]) -> frozenset[str]:
    """Return the kinds of a result that iterates its arguments (``tqdm(loader)``)."""
    return frozenset(each for found in kinds for each in found if each.startswith(_PASSES))


def of_dataset(call: Called, receiver: frozenset[str]) -> frozenset[str]:
    """Return the kinds of the result of a method of a TensorFlow data set."""
    if call.chain[-1] == "shuffle" and not call.alone:
        return _SHUFFLED
    return passed_on([receiver]) if call.chain[-1] in _ON_DATASETS else frozenset()


def generators(kinds: Iterable[str]) -> set[str]:
    """Return the generators from which a pass over a value of these kinds draws."""
    return {each.removeprefix(_PASSES) for each in kinds if each.startswith(_PASSES)}


def makers(code: OwnCode) -> dict[str, frozenset[str]]:
    """Return the notebook's functions whose result draws when it or its parts are iterated.

    The keys are the functions' names, methods as ``.name``; the values are kinds.
    """
    found: dict[str, frozenset[str]] = {}
    for _ in range(3):  # functions that return the results of functions
        for name, functions in code.functions.items():
            kinds = [_of_own(code, call, found) for each in functions for call in _returned(each)]
            if joined := frozenset[str]().union(*kinds):
                found[name] = joined
    return found


def _of_own(code: OwnCode, call: Called, found: dict[str, frozenset[str]]) -> frozenset[str]:
    name = call.chain[-1] if len(call.chain) == 1 else f".{call.chain[-1]}"
    return found.get(name) or of_call(call, code.path(call))


def _returned(function: FunctionSummary) -> Iterator[Called]:
    """Yield the calls whose results a function may return, alone or in a tuple."""
    for value in function.returns:
        yield from (*value.calls, *value.part_of_calls)
        names = value.same | value.inside
        for alias in function.aliases:
            if alias.target in names and not alias.is_kept:
                yield from (*alias.value.calls, *alias.value.part_of_calls)


def any_draws(code: OwnCode, scopes: Iterable[DefUse | FunctionSummary]) -> bool:
    """Return whether a notebook has objects that draw when they are iterated."""
    return any(
        of_call(call, code.path(call)) or (code.has_layers and call.chain[-1] == "shuffle")
        for each in scopes
        for call in each.calls
    )


class Iteration:
    """Draws by iteration in one scope: a cell, or the body of a function."""

    def __init__(self, code: OwnCode, kinds: Kinds) -> None:
        self._code = code
        self._kinds = kinds

    def loops(self, scope: DefUse | FunctionSummary) -> Effect:
        """Return what the loops of a cell or function draw, and the names that they iterate."""
        effect = Effect()
        for value in scope.iterated if self._code.draws_by_iteration else ():
            self._note(effect, value)
            effect.iterates |= value.same | value.part
        for value in scope.iterated:
            self._note_unknown(effect, value)
        return effect

    def given(self, effect: Effect, call: Called) -> None:
        """Note the draws of a function or method that receives a loader, and may iterate it."""
        word = call.chain[-1]
        if not self._code.draws_by_iteration or word in _NOT_ITERATING or word[:1].isupper():
            return
        if call.chain == ("tqdm",) or facts.passes_on(self._code.path(call) or ""):
            return  # it iterates later
        for value in call.given:
            self._note(effect, value)
            if "iterator" in self._kinds.of(value):
                effect.iterates |= value.same

    def _note(self, effect: Effect, value: CellValue) -> None:
        effect.passes |= generators(self._of(value))

    def _of(self, value: CellValue) -> frozenset[str]:
        """Return the kinds of a value, also if it is a field that the notebook's classes set."""
        fields = [each.partition(".")[2] for each in value.same if each.split(".")[0] in INSTANCES]
        values = [
            v for each in (*fields, *value.attributes) for v in self._code.fields.get(each, ())
        ]
        return self._kinds.of(value).union(*map(self._kinds.of, values))

    def _note_unknown(self, effect: Effect, value: CellValue) -> None:
        """Note that a loop iterates the result of an unknown library function, which may draw."""
        if (
            not self._kinds.of(value).isdisjoint({"foreign", "foreign part"})
            and effect.asks_unknown is None
        ):
            names = sorted(value.same) or [".".join(call.chain) for call in value.calls]
            found = next((f"iter({each})" for each in names), None)
            effect.asks_unknown = effect.asks_unknown or found
