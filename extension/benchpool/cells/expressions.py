"""Shapes of expressions: dotted names, what a value may keep inside, what a pattern binds."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from benchpool.cells import known

Chain = tuple[str, ...]
"""``a.b().c[0]`` as ``("a", "b", "()", "c", "[]")``."""


def chain_of(node: ast.expr) -> Chain:
    """Return ``a.b.c`` as words; ``()`` stands for a call in it; empty for anything else."""
    words: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            words.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Call):
            words.append("()")
            node = node.func
        elif isinstance(node, ast.Subscript):
            words.append("[]")
            node = node.value
        elif isinstance(node, ast.Name):
            return (node.id, *reversed(words))
        elif isinstance(node, ast.Await):
            node = node.value
        else:
            return ()


def root_of(node: ast.expr) -> str | None:
    chain = chain_of(node)
    return chain[0] if chain else None


_FRESH = ast.Constant | ast.JoinedStr | ast.Compare | ast.BinOp | ast.UnaryOp | ast.Lambda


def held_by(node: ast.expr) -> set[str]:
    """Return the names whose objects the value may be, or keep inside.

    Arithmetic, comparisons and texts make new objects; nearly everything else may keep what it
    was given.
    """
    if isinstance(node, _FRESH):
        return set()
    if isinstance(node, ast.Call):
        chain = chain_of(node.func)
        if len(chain) == 1 and chain[0] in known.READING_FUNCTIONS - _KEEPING:
            return set()
        kept: set[str] = {chain[0]} if chain else held_by(node.func)
        given = [*node.args, *[each.value for each in node.keywords]]
        return kept.union(*[held_by(each) for each in given])
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Subscript):
        return held_by(node.value)
    return {
        name
        for each in ast.iter_child_nodes(node)
        if isinstance(each, ast.expr | ast.comprehension | ast.keyword)
        for name in (held_by(each) if isinstance(each, ast.expr) else set())
    }


_KEEPING = frozenset(
    [
        "zip",
        "sorted",
        "reversed",
        "list",
        "tuple",
        "dict",
        "set",
        "iter",
        "map",
        "filter",
        "getattr",
        "enumerate",
        "min",
        "max",
    ]
)


def all_arguments(args: ast.arguments) -> list[ast.arg]:
    found = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return found + [each for each in (args.vararg, args.kwarg) if each is not None]


def pattern_names(pattern: ast.pattern) -> set[str]:
    return {
        name
        for each in ast.walk(pattern)
        for name in (getattr(each, "name", None), getattr(each, "rest", None))
        if isinstance(name, str)
    }


def leaves(body: Sequence[ast.stmt]) -> bool:
    """Say whether a block never goes on to what follows it."""
    return bool(body) and isinstance(body[-1], ast.Raise | ast.Return | ast.Continue | ast.Break)


def parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def bound_in(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that a function's body binds in its own scope."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            waiting += node.decorator_list
            continue
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp):
            continue
        if isinstance(node, ast.GeneratorExp):
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(each.asname or each.name).split(".")[0] for each in node.names}
        if isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        if isinstance(node, ast.pattern):
            found |= pattern_names(node)
        waiting += ast.iter_child_nodes(node)
    return found


def declared_outer(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that a function's body declares ``global`` or ``nonlocal``."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return found
