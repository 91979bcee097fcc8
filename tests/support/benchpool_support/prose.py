"""The sentences of docstrings and comments, for tests of their language."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

QUOTED = re.compile(
    r"``[^`]*``|`[^`]*`|\"[^\"\n]*\"|^ *>>> .*(?:\n *\S.*)*|^ +[\w.*, ]+:(?= )", re.MULTILINE
)
"""What is no sentence in a docstring: code and quotations, examples, and names of entries."""


class Sentence(NamedTuple):
    """A docstring or a comment, and the line where it begins."""

    line: int
    text: str


def prose(source: str) -> Iterator[Sentence]:
    """Yield docstrings, those of attributes too, and comments of a module, without their code.

    >>> [one.text for one in prose('limit = 3  # calls\\n\"\"\"Most ``calls``.\"\"\"')]
    ['Most .', 'calls']
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield Sentence(node.lineno, QUOTED.sub("", text))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Sentence(token.start[0], QUOTED.sub("", token.string.lstrip("#:! ")))
