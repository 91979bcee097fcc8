"""Normalisation of equivalent forms: calls that stand for an attribute become that attribute."""

from __future__ import annotations

import ast
import re

_CLASSES = frozenset(["list", "dict", "set", "bytearray", "object"])
_WORDS = re.compile(r"\b(getattr|vars)\s*\(|\b(list|dict|set|bytearray|object)\s*\.")
UNKNOWN = "__unknown__"
"""Stands for an attribute whose name is unknown."""


def plain(source: str, tree: ast.Module) -> ast.Module:
    """Return the tree with such calls replaced; it is changed in place.

    >>> text = 'getattr(xs, "append")(1)'
    >>> ast.unparse(plain(text, ast.parse(text)))
    'xs.append(1)'
    >>> text = 'list.append(xs, 1); vars(a)["n"] = 2'
    >>> print(ast.unparse(plain(text, ast.parse(text))))
    xs.append(1)
    a.__dict__['n'] = 2
    """
    if _WORDS.search(source):
        _Plain().visit(tree)
    return tree


class _Plain(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        function, given = node.func, node.args
        if isinstance(function, ast.Name) and given and not node.keywords:
            if function.id == "getattr" and 2 <= len(given) <= 3:
                read = ast.copy_location(_attribute(given[0], given[1]), node)
                if len(given) == 2 or isinstance(given[2], ast.Constant):
                    return read
                return ast.copy_location(ast.BoolOp(ast.Or(), [read, given[2]]), node)
            if function.id == "vars" and len(given) == 1:
                made = ast.Attribute(given[0], "__dict__", ast.Load())
                return ast.copy_location(made, node)
        if (
            isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Name)
            and function.value.id in _CLASSES
            and function.attr != "fromkeys"
            and given
            and not isinstance(given[0], ast.Starred)
        ):
            method = ast.copy_location(ast.Attribute(given[0], function.attr, ast.Load()), function)
            return ast.copy_location(ast.Call(method, given[1:], node.keywords), node)
        return node


def _attribute(whole: ast.expr, name: ast.expr) -> ast.expr:
    is_text = isinstance(name, ast.Constant) and isinstance(name.value, str)
    known = is_text and str(getattr(name, "value", "")).isidentifier()
    word = str(getattr(name, "value", "")) if known else UNKNOWN
    read = ast.Attribute(whole, word, ast.Load())
    if is_text:
        return read
    # The name itself is read too.
    pair = ast.copy_location(ast.Tuple([name, whole], ast.Load()), whole)
    last = ast.copy_location(ast.Subscript(pair, ast.Constant(1), ast.Load()), whole)
    ast.fix_missing_locations(last)
    return ast.Attribute(last, word, ast.Load())
