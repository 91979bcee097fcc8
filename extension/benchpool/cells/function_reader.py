"""Summaries of functions: what calling one needs, changes and returns, from its own body."""

from __future__ import annotations

import ast

from benchpool.cells import expressions, facts, receivers, scope_reader, setting_facts
from benchpool.cells.alias_graph import Change
from benchpool.cells.def_use import INSTANCES, Alias, CellValue, DefUse, FunctionSummary

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def summary(node: Function, is_method: bool = False) -> FunctionSummary:
    """Return what calling a function needs, changes and returns."""
    if is_method:
        node = receivers.renamed(node)
    parameters = expressions.all_arguments(node.args)
    names = [each.arg for each in parameters]
    instance = names[0] if is_method and names and names[0] in INSTANCES else None
    reader = scope_reader.ScopeReader(DefUse(), instance)
    body = [ast.Expr(node.body)] if isinstance(node, ast.Lambda) else node.body
    outer = expressions.declared_outer(body)
    own = expressions.bound_in(body) - outer
    bound = {*names, *own}
    reader.last = body[0] if isinstance(node, ast.Lambda) else None
    reader.block(body, bound)
    made = reader.made
    outer |= made.set_by_text
    if isinstance(node, ast.Lambda):
        made.returns.append(reader.values.of(node.body))
    inner = [each for found in made.functions.values() for each in found]
    needs = dict(made.uses)
    sure = made.uses.keys() - made.forgiven
    changes = dict(made.changes)
    for each in inner:
        needs.update({k: v for k, v in each.uses.items() if k not in bound})
        sure |= each.uses.keys() - each.forgiven
        for name, how in each.changes.items():
            if name not in each.own and name not in each.parameters:
                changes[name] = max(how, changes.get(name, how))
    for name in outer & made.possible_definitions:
        changes[name] = max(Change.SHALLOW, changes.get(name, Change.SHALLOW))
    if instance is not None:
        names = names[1:]
    return FunctionSummary(
        tuple(names),
        node.args.vararg.arg if node.args.vararg else None,
        frozenset({*own, *made.functions}),
        {name: line for name, line in needs.items() if name not in bound},
        changes,
        (*made.calls, *[call for each in inner for call in each.calls]),
        (
            *made.aliases,
            *[alias for each in inner for alias in each.aliases],
            *_captured(made, bound),
        ),
        tuple(made.returns),
        made.yields,
        _keeps_state(inner, bound),
        any(not made.functions.keys().isdisjoint(v.same | v.inside) for v in made.returns),
        _growing(node.args),
        None,
        made.defines_unknown,
        next(iter(made.ambient), None) or _set_on_import(made),
        frozenset(outer & made.possible_definitions).union(*[each.rebinds for each in inner]),
        body,
        instance,
        _defaults(node.args),
        forgiven=frozenset(needs.keys() - sure),
        iterated=(*made.iterated, *[value for each in inner for value in each.iterated]),
    )


def _set_on_import(made: DefUse) -> str | None:
    """Return a module that the body itself imports and in which it sets a value."""
    return next(
        (
            f"{name}…"
            for name in made.changes
            if made.imports.get(name, "").partition(".")[0] not in {"", *setting_facts.PICTURES}
        ),
        None,
    )


def _defaults(args: ast.arguments) -> dict[str, frozenset[str]]:
    """Return the names that parameters stand for by default."""
    return {
        each.arg: frozenset([default.id])
        for each, default in _with_defaults(args)
        if isinstance(default, ast.Name)
    }


def _with_defaults(args: ast.arguments) -> list[tuple[ast.arg, ast.expr | None]]:
    positional = [*args.posonlyargs, *args.args]
    return [
        *zip(reversed(positional), reversed(args.defaults), strict=False),
        *zip(args.kwonlyargs, args.kw_defaults, strict=True),
    ]


def _captured(made: DefUse, bound: set[str]) -> list[Alias]:
    """Return aliases for the local names that an inner function captures."""
    found = {
        name: frozenset(word for each in inner for word in (*each.uses, *each.changes)) & bound
        | frozenset(word for each in inner for word in _surely_changed(each))
        for name, inner in made.functions.items()
    }
    return [
        Alias(name, CellValue(inside=held - {name}), is_kept=True)
        for name, held in found.items()
        if held - {name}
    ]


def _surely_changed(function: FunctionSummary) -> frozenset[str]:
    """Return the names from outside that a function changes directly or by a known method."""
    mine = {*function.own, *function.parameters, function.rest}
    called = [call for call in function.calls if call.chain[-1] in facts.CHANGING_METHODS]
    receivers = [call.receiver.same for call in called if call.receiver is not None]
    return frozenset(function.changes).union(*receivers) - mine


def _keeps_state(inner: list[FunctionSummary], bound: set[str]) -> bool:
    """Return whether an inner function changes objects made by or given to the outer call."""
    changed = {name for each in inner for name in each.changes if name not in each.own}
    called = {
        name
        for each in inner
        for call in each.calls
        if call.receiver is not None and facts.method(call.chain[-1]) not in {"reading", "views"}
        for name in call.receiver.same
    }
    mine = {name for each in inner for name in (*each.own, *each.parameters)}
    return bool((changed & bound) | ((called & bound) - mine))


def _growing(args: ast.arguments) -> frozenset[str]:
    display = ast.List | ast.Dict | ast.Set | ast.Call
    pairs = _with_defaults(args)
    return frozenset(each.arg for each, default in pairs if isinstance(default, display))
