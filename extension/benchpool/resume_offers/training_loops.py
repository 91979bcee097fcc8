"""Loops of a training: the loop around its steps, and the nested ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from benchpool.cells import expressions


@dataclass(frozen=True, slots=True)
class TrainingLoop:
    """Outermost loop of a training, the nested loops, and the statements before it."""

    around: ast.For
    inside: tuple[ast.For, ...]
    before: tuple[ast.stmt, ...]


def find(statements: Sequence[ast.stmt]) -> TrainingLoop | None:
    """Return the loop around all steps, also if it calls the function that contains the steps."""
    for number, statement in enumerate(statements):
        if isinstance(statement, ast.For) and _learns(statement):
            return TrainingLoop(statement, tuple(_within(statement)), tuple(statements[:number]))
        inner = find([*_blocks(statement)])
        if inner is None:
            continue
        if isinstance(statement, ast.FunctionDef):
            caller = _calling(statement.name, statements)
            return inner if caller is None else _joined(caller, inner)
        if isinstance(statement, ast.ClassDef):
            return inner
        return replace(inner, before=(*statements[:number], *inner.before))
    return None


def _joined(caller: TrainingLoop, inner: TrainingLoop) -> TrainingLoop:
    return TrainingLoop(caller.around, (inner.around, *inner.inside), caller.before)


def _calling(name: str, statements: Sequence[ast.stmt]) -> TrainingLoop | None:
    """Return the loop that calls a function."""
    for number, statement in enumerate(statements):
        before = tuple(statements[:number])
        if isinstance(statement, ast.For):
            called = {expressions.chain_of(call.func)[-1:] for call in calls_in(statement)}
            if (name,) in called:
                return TrainingLoop(statement, (), before)
        if (found := _calling(name, [*_blocks(statement)])) is not None:
            in_function = isinstance(statement, ast.FunctionDef)
            return found if in_function else replace(found, before=(*before, *found.before))
    return None


def _blocks(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the statements inside a function, a class, an ``if``, ``with`` or ``try``."""
    for name in ("body", "orelse", "finalbody"):
        yield from getattr(statement, name, [])


def _within(loop: ast.For) -> Iterator[ast.For]:
    """Yield the nested loops of a training loop, from the outside in."""
    for node in loop.body:
        for each in [node, *_blocks(node)]:
            if isinstance(each, ast.For) and _learns(each):
                yield each
                yield from _within(each)
                return


def _learns(loop: ast.For) -> bool:
    return any(method_of(node) == "backward" for node in ast.walk(loop))


def calls_in(statement: ast.stmt) -> list[ast.Call]:
    """Return the calls in a statement, in source order."""
    found = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return sorted(found, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))


def method_of(node: ast.AST) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr
    return ""
