"""Methods that Python calls implicitly: operators, loops, ``len()``, conditions, properties.

They are searched only if a class of the notebook has such a method.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from benchpool.cells import known
from benchpool.cells.expressions import children, root_of

Use = tuple[str, str]
"""A name, and the method or attribute of it that is used."""

_OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "lshift",
    ast.RShift: "rshift", ast.BitOr: "or", ast.BitAnd: "and", ast.BitXor: "xor",
}  # fmt: skip
_COMPARISONS = {
    ast.Eq: "__eq__", ast.NotEq: "__ne__", ast.Lt: "__lt__", ast.LtE: "__le__", ast.Gt: "__gt__",
    ast.GtE: "__ge__",
}  # fmt: skip
_UNARY = {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Invert: "__invert__"}
_ITERATED = ("__iter__", "__next__", "__getitem__", "__len__", "__aiter__", "__anext__")
_SHOWN = ("__repr__", "__str__", "__format__", "_repr_html_")
_ASKED = ("__bool__", "__len__")
_ITERATING = (
    *("list", "tuple", "set", "frozenset", "dict", "sum", "min", "max", "any", "all", "sorted"),
    *("zip", "enumerate", "map", "filter", "next", "iter", "reversed"),
)
_LOOKED_UP = ("__hash__", "__eq__")
_COMPARED = ("__lt__", "__gt__", "__eq__")
_FUNCTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_ITERATING, _ITERATED),
    **dict.fromkeys(["str", "repr", "print", "display", "format"], _SHOWN),
    **{name: (f"__{name}__",) for name in ("len", "abs", "int", "float", "hash", "round", "index")},
    "bool": _ASKED,
    **dict.fromkeys(["sorted", "min", "max"], (*_ITERATED, *_COMPARED)),
    "sum": (*_ITERATED, "__add__", "__radd__"),
    **dict.fromkeys(["set", "frozenset", "dict"], (*_ITERATED, "__hash__", "__eq__")),
}
_COMPARING = frozenset(["sort", "remove", "index", "count", "insort", "heappush", "heapify"])
_KINDS = frozenset(
    [
        *(ast.BinOp, ast.AugAssign, ast.UnaryOp, ast.Compare, ast.For, ast.AsyncFor, ast.Starred),
        *(ast.comprehension, ast.If, ast.While, ast.IfExp, ast.Assert, ast.BoolOp, ast.Delete),
        *(ast.Assign, ast.FormattedValue, ast.Subscript, ast.Attribute, ast.Call),
        *(ast.Dict, ast.Set),
    ]
)
_LEAVES = frozenset([ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del, ast.Import, ast.alias])


def operator(node: ast.BinOp) -> str:
    """Return the name of an operator's method.

    >>> operator(ast.parse("a << b", mode="eval").body)
    '__lshift__'
    """
    return f"__{_OPERATORS[type(node.op)]}__"


def uses(body: Sequence[ast.AST], owner: str | None, *, is_cell: bool) -> frozenset[Use]:
    """Return the names and the methods of them that Python would call.

    Args:
        body: Statements.
        owner: The name of the instance in a method.
        is_cell: Bodies of functions and classes do not run here, and the last value is shown.

    >>> sorted(uses(ast.parse("for x in xs: a += len(b)").body, None, is_cell=True))[:2]
    [('a', '__add__'), ('a', '__iadd__')]
    """
    found: set[Use] = set()
    if is_cell and body and isinstance(body[-1], ast.Expr):
        found.update(_named(body[-1].value, owner, _SHOWN))
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if is_cell and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        kind = type(node)
        if kind in _LEAVES:
            continue
        if kind in _KINDS:
            for part, methods in _called(node):
                found.update(_named(part, owner, methods))
        waiting += children(node)
    return frozenset(found)


def _named(node: ast.AST, owner: str | None, methods: Iterable[str]) -> Iterator[Use]:
    root = root_of(node, owner) if isinstance(node, ast.expr) else None
    of_builtin = root in known.READING_FUNCTIONS and not isinstance(node, ast.Name)
    if root is not None and not of_builtin:  # arguments of ``zip`` are handled at its call
        yield from ((root, method) for method in methods)


def _called(node: ast.AST) -> Iterator[tuple[ast.AST, Iterable[str]]]:
    """Yield parts of a node and the methods of them that Python calls."""
    if isinstance(node, ast.BinOp):
        name = _OPERATORS[type(node.op)]
        yield node.left, [f"__{name}__"]
        yield node.right, [f"__r{name}__"]
    elif isinstance(node, ast.AugAssign):
        name = _OPERATORS[type(node.op)]
        yield node.target, [f"__i{name}__", f"__{name}__"]
        yield node.value, [f"__r{name}__"]
    elif isinstance(node, ast.UnaryOp):
        yield node.operand, [_UNARY.get(type(node.op), ""), *_ASKED]
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for first, how, second in zip(sides, node.ops, sides[1:], strict=False):
            if isinstance(how, ast.In | ast.NotIn):
                yield second, ["__contains__", *_ITERATED]
            elif type(how) in _COMPARISONS:
                yield first, [_COMPARISONS[type(how)]]
                yield second, [_COMPARISONS[type(how)]]
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield node.iter, _ITERATED
    elif isinstance(node, ast.Starred):
        yield node.value, _ITERATED
    elif isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        yield node.test, _ASKED
    elif isinstance(node, ast.BoolOp):
        yield from ((each, _ASKED) for each in node.values)
    elif isinstance(node, ast.FormattedValue):
        yield node.value, _SHOWN
    elif isinstance(node, ast.Subscript):
        by_item = {ast.Store: ["__setitem__"], ast.Del: ["__delitem__"]}
        yield node.value, by_item.get(type(node.ctx), ["__getitem__", "__missing__"])
        yield node.slice, _LOOKED_UP
    elif isinstance(node, ast.Dict | ast.Set):
        keys = node.keys if isinstance(node, ast.Dict) else node.elts
        yield from ((each, _LOOKED_UP) for each in keys if each is not None)
    elif isinstance(node, ast.Attribute):
        hook = {ast.Load: "__getattr__", ast.Store: "__setattr__", ast.Del: "__delattr__"}
        yield node.value, [hook[type(node.ctx)], node.attr]
    elif isinstance(node, ast.Delete):
        yield from ((each, ["__del__"]) for each in node.targets if isinstance(each, ast.Name))
    elif isinstance(node, ast.Call):
        yield from ((each.value, ["write"]) for each in node.keywords if each.arg == "file")
        methods = _FUNCTIONS.get(node.func.id, ()) if isinstance(node.func, ast.Name) else ()
        yield from ((each, methods) for each in node.args if methods)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _COMPARING:
            yield from ((each, _COMPARED) for each in (node.func.value, *node.args))
    elif isinstance(node, ast.Assign):
        unpacks = any(isinstance(each, ast.Tuple | ast.List) for each in node.targets)
        yield from [(node.value, _ITERATED)] if unpacks else []
