"""Names to which a cell only adds: earlier additions to them do not affect the cell."""

from __future__ import annotations

import ast
import functools
from collections import Counter

_ADDS = frozenset(["append", "add", "extend", "update"])


@functools.lru_cache(maxsize=1024)
def only_added_to(tree: ast.Module) -> frozenset[str]:
    """Return the names that a cell uses only in the forms ``x.append(…)`` and ``x["k"] = …``.

    The key must be a string: setting a list item by number needs a list that is long enough.

    >>> code = "losses.append(1)\\nscores['a'] = 2\\nrows[0] = 3\\nseen.add(x)\\nprint(seen)"
    >>> sorted(only_added_to(ast.parse(code)))
    ['losses', 'scores']
    """
    every, adding = Counter[str](), Counter[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name):
                every[name] += 1
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr))):
                adding[name] += attr in _ADDS
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str()))]
            ):
                adding[name] += 1
    return frozenset(name for name, count in adding.items() if count and count == every[name])
