"""Substitution of ``{x}`` and ``$x`` by IPython in a line of the shell or of a magic.

IPython evaluates all fields of a line, and leaves the line unchanged if one of them fails:
``$HOME`` and ``{a,b}`` reach the shell if no cell defines these names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from IPython.utils.text import DollarFormatter

_SINGLE = re.compile(r"(?<![${])\{\s*([A-Za-z_]\w*)\s*\}(?!\})")
_FIELD_START = re.compile(r"[{$]")


def expressions_in(text: str) -> list[str]:
    """Return the expressions that IPython evaluates for a line; none if it leaves the line as is.

    >>> expressions_in("cp {src[0]} $out.name $$x ${HOME} '$a'")
    ['src[0]', 'out.name', 'HOME']
    >>> expressions_in("awk '{print $1}' {x}"), expressions_in("touch {1..5}")
    ([], [])
    """
    if not _FIELD_START.search(text):
        return []
    try:
        fields = [
            f"{name}:{spec}" if spec else name
            for _, name, spec, _ in DollarFormatter().parse(text)
            if name is not None
        ]
    except ValueError:  # a brace that is not closed
        return []
    return fields if all(map(is_expression, fields)) else []


def names_in(expressions: Iterable[str]) -> frozenset[str]:
    """Return the names in expressions.

    >>> sorted(names_in(["a.b[i]", "1"]))
    ['a', 'i']
    """
    trees = [ast.parse(each.strip(), mode="eval") for each in expressions]
    return frozenset(
        node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)
    )


def single_names(text: str) -> frozenset[str]:
    """Return the names that stand alone in braces, which have no other meaning in a shell.

    >>> sorted(single_names("run {x} { y } ${HOME} {a,b} {{z}}"))
    ['x', 'y']
    """
    return frozenset(_SINGLE.findall(text)) if expressions_in(text) else frozenset()


def is_expression(text: str) -> bool:
    """Return whether a text is one Python expression."""
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
