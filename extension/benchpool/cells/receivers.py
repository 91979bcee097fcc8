"""Methods whose first parameter has an unusual name (``def up(this)``): it is read as ``self``."""

from __future__ import annotations

import ast
import copy
from typing import TypeVar

from benchpool.cells import expressions
from benchpool.cells.def_use import INSTANCES

Function = TypeVar("Function", bound=ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
_OF_CLASSES = frozenset(["classmethod", "__new__", "__init_subclass__", "__class_getitem__"])


def renamed(node: Function) -> Function:
    """Return a method whose first parameter is ``self`` or ``cls``, as a copy if it was not.

    Static methods stay as they are.
    """
    first = next(iter([*node.args.posonlyargs, *node.args.args]), None)
    if first is None or first.arg in INSTANCES:
        return node
    words = set[str]()
    if not isinstance(node, ast.Lambda):
        words.add(node.name)
        words.update(*[expressions.chain_of(each)[-1:] for each in node.decorator_list])
    if "staticmethod" in words:
        return node
    made = copy.deepcopy(node)
    taken = {each.id for each in ast.walk(made) if isinstance(each, ast.Name)}
    is_of_class = bool(words & _OF_CLASSES) or "self" in taken
    _Renaming(first.arg, "cls" if is_of_class else "self").visit(made)
    return made


class _Renaming(ast.NodeTransformer):
    """Renames a parameter in a function and its inner functions, unless they have their own."""

    def __init__(self, before: str, after: str) -> None:
        self._before = before
        self._after = after
        self._is_inside = False

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id == self._before:
            node.id = self._after
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        if node.arg == self._before:
            node.arg = self._after
        return node

    def _function(self, node: Function) -> Function:
        mine = {each.arg for each in expressions.all_arguments(node.args)}
        if self._is_inside and self._before in mine:
            return node
        self._is_inside = True
        self.generic_visit(node)
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function
