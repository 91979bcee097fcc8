"""Contents put into lists, dicts and objects after creation, by methods, functions and names.

A configuration object counts as numbers and strings only while no code puts other values into it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchpool.cells import facts
from benchpool.cells.def_use import Called, ClassSummary, DefUse, FunctionSummary


@dataclass(frozen=True, slots=True)
class Filling:
    """Contents that a notebook puts into its objects.

    Attributes:
        fed: Names of lists and dicts into which a method puts mutable values.
        put_into: Names that methods put into lists and dicts, by the name of the container.
        settings_only: Classes whose objects hold only numbers and strings, like configurations.
        filled_classes: Classes with a mutable value set from outside.
        fills_arguments: Whether a function puts mutable values into its arguments.
    """

    fed: frozenset[str]
    put_into: Mapping[str, Collection[str]]
    settings_only: frozenset[str]
    filled_classes: frozenset[str]
    fills_arguments: bool


def of(
    def_uses: Collection[DefUse],
    functions: Sequence[FunctionSummary],
    classes: Mapping[str, Sequence[ClassSummary]],
) -> Filling:
    """Return what a notebook puts where, from its cells, functions and classes."""
    scopes: list[DefUse | FunctionSummary] = [*def_uses, *functions]
    calls = [call for scope in scopes for call in scope.calls]
    aliases = [alias for scope in scopes for alias in scope.aliases]
    filled = {a.target for a in aliases if a.is_kept and not a.value.is_fixed} & classes.keys()
    kept = frozenset[str]().union(*map(_keeps_of_arguments, functions))
    return Filling(
        _fed(calls),
        _put_into(calls),
        _settings_only(calls, classes) - filled,
        frozenset(filled),
        any(_fills_arguments(each, kept) for each in functions),
    )


def _settings_only(
    calls: Sequence[Called], classes: Mapping[str, Sequence[ClassSummary]]
) -> frozenset[str]:
    if any(not _BY_TEXT.isdisjoint(call.chain) for call in calls):
        return frozenset()
    made_with = {call.chain[-1] for call in calls if not all(it.is_fixed for it in call.given)}
    return frozenset(
        name
        for name, found in classes.items()
        if name not in made_with and all(each.only_fixed and not each.bases for each in found)
    )


_BY_TEXT = frozenset(["vars", "setattr", "__setattr__", "__dict__"])
"""Words that set a field whose name is only given as a string."""


def _fed(calls: Iterable[Called]) -> frozenset[str]:
    """Return the names of lists and dicts into which a method puts mutable values."""
    return frozenset(
        name
        for call in calls
        if call.receiver is not None
        and facts.method(call.chain[-1]) == "keeping"
        and not _adds_fixed(call)
        for name in call.receiver.same
    )


def _put_into(calls: Iterable[Called]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for call in calls:
        if call.receiver is not None and facts.method(call.chain[-1]) == "keeping":
            for name in call.receiver.same:
                for value in call.given:
                    found.setdefault(name, set()).update(value.mentioned)
    return found


def _keeps_of_arguments(function: FunctionSummary) -> frozenset[str]:
    """Return the names, fields of objects included, that a function binds to its arguments."""
    given = {*function.parameters, function.rest}
    return frozenset(a.target for a in function.aliases if not given.isdisjoint(a.value.same))


def _fills_arguments(function: FunctionSummary, kept: frozenset[str]) -> bool:
    """Return whether a function puts mutable values into its own or its object's arguments."""
    mine = _keeps_of_arguments(function)
    fields = {each for each in kept if "." in each}
    into = {*function.parameters, function.rest, *mine, *fields}
    puts = any(a.is_kept and not a.value.is_fixed and a.target in into for a in function.aliases)
    return puts or not _fed(function.calls).isdisjoint(into)


def _adds_fixed(call: Called) -> bool:
    """Return whether a method puts only numbers and strings into its receiver."""
    spreads = call.chain[-1] in {"update", "extend"}
    return all(value.is_fixed for _, value in call.keywords) and all(
        value.is_fixed or (spreads and value.holds_fixed) for value in call.arguments
    )
