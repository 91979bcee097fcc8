"""Names that a loop's code binds, changes, calls and needs, read from its text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from benchpool.cells import expressions

UNKNOWN = ast.Name("?", ast.Load())
"""Stands for a value that the text does not show."""

_ONLY_READ = frozenset({"print", "display", "len", "sum", "min", "max"})


def bound(statements: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name that statements bind, with its value, or ``UNKNOWN`` if it is not visible."""
    for statement in statements:
        match statement:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _paired(target, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case ast.With(items=items):
                for item in items:
                    if item.optional_vars is not None:
                        yield from _paired(item.optional_vars, UNKNOWN)
            case ast.For(target=target):
                yield from _paired(target, UNKNOWN)


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        alike = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
        values = value.elts if isinstance(value, ast.Tuple) and alike else [UNKNOWN] * 99
        for each, of in zip(target.elts, values, strict=False):
            yield from _paired(each, of)


def stored(loop: ast.For) -> Iterator[str]:
    """Yield the names that the loop's lines bind, or whose items they set."""
    for node in _inside(loop):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            yield from expressions.chain_of(node.value)[:1]


def needed(loop: ast.For) -> set[str]:
    """Return the names that the loop's lines read, including those of ``x += 1``."""
    found: set[str] = set()
    for node in _inside(loop):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def called(loop: ast.For) -> Iterator[str]:
    """Yield names that a call may change: receivers of methods, arguments of unused calls."""
    for node in _inside(loop):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from expressions.chain_of(node.func)[:1]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Name) and call.func.id not in _ONLY_READ:
                given = [*call.args, *(each.value for each in call.keywords)]
                yield from (each.id for each in given if isinstance(each, ast.Name))


def sets_attributes(loop: ast.For) -> bool:
    """Return whether the loop's lines set attributes of objects."""
    return any(
        isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        for node in _inside(loop)
    )


def may_skip_lines(loop: ast.For) -> bool:
    """Return whether a turn may end before its last line."""
    own = list(loop.body)
    while own:
        node = own.pop()
        if isinstance(node, ast.Continue | ast.Break):
            return True
        if not isinstance(node, ast.For | ast.While):
            own += [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
    return any(isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) for node in _inside(loop))


def _inside(loop: ast.For) -> Iterator[ast.AST]:
    for statement in loop.body:
        yield from ast.walk(statement)
