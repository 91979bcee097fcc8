"""Shapes of expressions: dotted names, and the names that patterns and bodies bind."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from benchpool.cells.def_use import Chain


def chain_of(node: ast.expr, owner: str | None = None) -> Chain:
    """Return ``a.b.c`` as a tuple of words; empty for any other expression.

    ``()`` stands for a call in it. With an owner, ``self.x`` is one word: in a method it counts as
    a name.
    """
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
            if node.id == owner and words and words[-1] not in {"()", "[]"}:
                return (f"{owner}.{words.pop()}", *reversed(words))
            return (node.id, *reversed(words))
        elif isinstance(node, ast.Await):
            node = node.value
        else:
            return ()


def children(node: ast.AST) -> list[ast.AST]:
    """Return the direct child nodes, twice as fast as ``ast.iter_child_nodes``.

    >>> [type(each).__name__ for each in children(ast.parse("f(x, y)").body[0].value)]
    ['Name', 'Name', 'Name']
    """
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [each for each in value if isinstance(each, ast.AST)]
    return found


def root_of(node: ast.expr, owner: str | None = None) -> str | None:
    chain = chain_of(node, owner)
    return chain[0] if chain else None


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
    """Return whether a block never continues with the statement after it."""
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
            found |= _walrus(node)
            continue
        if isinstance(node, ast.GeneratorExp):
            found |= _walrus(node)
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(each.asname or each.name).split(".")[0] for each in node.names}
        if isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        if isinstance(node, ast.pattern):
            found |= pattern_names(node)
        waiting += children(node)
    return found


def _walrus(node: ast.expr) -> set[str]:
    return {each.target.id for each in ast.walk(node) if isinstance(each, ast.NamedExpr)}


def declared_outer(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that a function's body declares ``global`` or ``nonlocal``."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += children(node)
    return found
