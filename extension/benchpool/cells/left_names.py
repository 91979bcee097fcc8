"""Names that selected cells assign or change: the values that a user may load back from a job."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from benchpool.cells import current_figure
from benchpool.cells.cell_changes import CellChanges
from benchpool.cells.magics import ParsedCell

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_APART = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def of(
    selected: Sequence[int], reads: Mapping[int, ParsedCell], changes: CellChanges
) -> tuple[str, ...]:
    """Return the names that these cells assign or change, each at its last place.

    Excluded are names of imports, functions, classes and loops, and names that begin with ``_``.
    """
    found: dict[str, None] = {}
    for number in selected:
        tree = reads[number].tree
        if tree is None or number not in changes.effects:
            continue
        assigned = list(assigned_names(tree))
        changed = [
            name
            for name in sorted(changes.effects[number].changes)
            if name in changes.definers
            and name not in changes.code.functions
            and name != current_figure.NAME
        ]
        apart = changes.def_uses[number].possible_definitions - set(assigned)
        for name in [*(each for each in changed if each not in apart), *assigned]:
            if not name.startswith("_"):
                found.pop(name, None)
                found[name] = None
    return tuple(found)


def assigned_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that code assigns to outside of functions and loops.

    >>> list(assigned_names(ast.parse("import os\\na, *b = f()\\nfor i in a: c = i\\nif a: d = 1")))
    ['a', 'b', 'd']
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (*_LOOPS, *_APART, *_COMPREHENSIONS)):
            continue
        is_file = isinstance(tree, ast.withitem)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not is_file:
            yield node.id
        yield from assigned_names(node)
