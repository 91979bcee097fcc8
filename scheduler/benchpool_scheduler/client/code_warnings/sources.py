"""Code as it is read for warnings: Python, with the lines that IPython or a shell runs. Pure."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from benchpool_scheduler.client.imports.reading import Piece

_CELL_MAGIC = re.compile(r"\s*%%(\S+)")
_SHELLS = frozenset({"bash", "sh", "zsh", "!", "sx", "system", "script"})
_NOT_PYTHON = re.compile(r"^(\s*)[%!?].*$", re.MULTILINE)
_NOTHING = ast.Module(body=[], type_ignores=[])


def piece_of_source(where: str, source: str) -> Piece:
    """Return a script or a cell as a piece; no Python is read of one that cannot be parsed.

    >>> piece = piece_of_source("cell 1", "%matplotlib inline\\nx = 1")
    >>> ast.unparse(piece.tree), piece.text
    ('pass\\nx = 1', '%matplotlib inline\\nx = 1')
    """
    tree = _NOTHING
    if not is_shell(source):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(_NOT_PYTHON.sub(r"\1pass", source))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    return Piece(where, tree, source)


def is_shell(source: str) -> bool:
    """Return whether a cell is a script of the shell (``%%bash``)."""
    found = _CELL_MAGIC.match(source)
    return found is not None and found[1] in _SHELLS


def shell_lines(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that a shell runs, with their numbers from 1."""
    whole = is_shell(source)
    for number, line in enumerate(source.split("\n"), 1):
        if (whole and not line.lstrip().startswith("#")) or line.lstrip().startswith("!"):
            yield number, line.lstrip().removeprefix("!")
