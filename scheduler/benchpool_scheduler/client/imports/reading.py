"""Imports of a piece of Python code, and whether each is certain to run. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

_FORGIVES = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
_ELSEWHERE = re.compile(r"TYPE_CHECKING|platform|os\.name|version_info")
"""Conditions of code for a type checker, or for another system or Python version."""

_LOOSE = re.compile(
    r"\bsys\s*\.\s*(path|modules|meta_path|path_hooks)\b|\bfrom\s+sys\s+import\b|"
    r"addsitedir|extend_path|\bchdir\b|\b(pip3?|conda|mamba|uv)\b"
)
"""Code that may add modules at run time."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Piece of code. ``where``: its name for the caller, a cell ID or a file path."""

    where: str
    tree: ast.Module
    text: str


@dataclass(frozen=True, slots=True)
class Import:
    """Import statement for one module.

    Attributes:
        module: Dotted name. For a relative import the part after the dots.
        level: Number of dots of a relative import.
        names: Names imported from it, which may be modules.
        sure: Whether it always runs with the piece, and its failure is not handled.
    """

    module: str
    line: int
    sure: bool = True
    level: int = 0
    names: tuple[str, ...] = ()


def is_loose(text: str) -> bool:
    """Return whether code may change the set of importable modules.

    >>> is_loose("sys.path.insert(0, 'lib')"), is_loose("import sys")
    (True, False)
    """
    return _LOOSE.search(text) is not None


def imports_of(tree: ast.Module) -> list[Import]:
    """Return the imports of a piece, except those whose failure is handled.

    >>> code = '''
    ... import torch, numpy as np
    ... try:
    ...     import apex
    ... except ImportError:
    ...     apex = None
    ... def plot():
    ...     from matplotlib import pyplot'''
    >>> [(each.module, each.line, each.sure) for each in imports_of(ast.parse(code))]
    [('torch', 2, True), ('numpy', 2, True), ('matplotlib', 8, False)]
    """
    return list(_in(tree.body))


def _in(body: Sequence[ast.stmt]) -> Iterator[Import]:
    for statement in body:
        yield from _of(statement)


def _of(statement: ast.stmt) -> Iterator[Import]:
    match statement:
        case ast.Import(names=names, lineno=line):
            for each in names:
                yield Import(each.name, line)
        case ast.ImportFrom(module=module, names=names, level=level, lineno=line):
            yield Import(module or "", line, True, level, tuple(each.name for each in names))
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=finalbody):
            if not any(_forgives(each.type) for each in handlers):
                yield from _in(body)
            for handler in handlers:
                yield from _perhaps(handler.body)
            yield from _perhaps(orelse)
            yield from _in(finalbody)
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            if not any("suppress" in ast.unparse(each.context_expr) for each in items):
                yield from _in(body)
        case ast.If(test=test, body=body, orelse=orelse):
            condition = ast.unparse(test)
            if not _ELSEWHERE.search(condition):
                yield from _in(body) if "__main__" in condition else _perhaps(body)
                yield from _perhaps(orelse)
        case ast.ClassDef(body=body):
            yield from _in(body)
        case _:
            yield from _perhaps(_inside(statement))


def _inside(statement: ast.stmt) -> list[ast.stmt]:
    """Return the statements inside another one, such as a function, a loop or a match."""
    cases = [each.body for each in getattr(statement, "cases", ())]
    parts = [getattr(statement, name, []) for name in ("body", "orelse")]
    return [each for part in [*parts, *cases] for each in part]


def _perhaps(body: Sequence[ast.stmt]) -> Iterator[Import]:
    return (replace(each, sure=False) for each in _in(body))


def _forgives(kind: ast.expr | None) -> bool:
    if kind is None:
        return True
    return any(isinstance(each, ast.Name) and each.id in _FORGIVES for each in ast.walk(kind))
