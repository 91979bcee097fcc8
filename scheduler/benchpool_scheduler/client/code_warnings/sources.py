"""Source code prepared for warnings: Python, and the lines that IPython or a shell runs. Pure."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from benchpool_scheduler.client.imports.reading import Piece

_CELL_MAGIC = re.compile(r"\s*%%(\S+)")
_SHELLS = frozenset({"bash", "sh", "zsh", "!", "sx", "system", "script"})
_GETS = r"(?:[\w.,\[\] *]+=\s*)?"
_NOT_PYTHON = re.compile(rf"^([ \t]*){_GETS}[%!?].*$", re.MULTILINE)
_SHELL = re.compile(rf"\s*{_GETS}!!?(.*)")
_MAGIC = re.compile(rf"\s*{_GETS}%%?(\w.*)")
_RUNS_PYTHON = re.compile(
    rf"^([ \t]*){_GETS}%(?:time|timeit|prun|memit)\s+(?:-\w+(?:\s+\d+)?\s+)*", re.MULTILINE
)
"""Magics that run the Python code after them."""
_NOTHING = ast.Module(body=[], type_ignores=[])


def piece_of_source(where: str, source: str) -> Piece:
    """Return a script or a cell as a piece. Code that cannot be parsed has an empty tree.

    >>> piece = piece_of_source("cell 1", "%matplotlib inline\\nx = 1")
    >>> ast.unparse(piece.tree), piece.text
    ('pass\\nx = 1', '%matplotlib inline\\nx = 1')
    """
    texts = [source, _RUNS_PYTHON.sub(r"\1", source), source]
    texts[1:] = [_NOT_PYTHON.sub(r"\1pass", each) for each in texts[1:]]
    trees = () if is_shell(source) else (_parsed(each) for each in texts)
    return Piece(where, next((each for each in trees if each is not None), _NOTHING), source)


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_shell(source: str) -> bool:
    """Return whether a cell is a shell script (``%%bash``)."""
    found = _CELL_MAGIC.match(source)
    return found is not None and found[1] in _SHELLS


def shell_lines(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that a shell runs, with their line numbers from 1."""
    whole = is_shell(source)
    for number, line in enumerate(source.split("\n"), 1):
        command = _SHELL.match(line)
        if command is not None:
            yield number, command[1]
        elif whole and not line.lstrip().startswith("#"):
            yield number, line.lstrip()


def commands_in(piece: Piece) -> Iterator[tuple[int, str]]:
    """Yield the lines of a cell that a shell or a magic reads. A Python file has none.

    >>> list(commands_in(piece_of_source("cell 1", "%cd ..\\nx = 1\\nfiles = !ls ../data")))
    [(3, 'ls ../data'), (1, 'cd ..')]
    """
    if piece.where.endswith(".py"):
        return
    yield from shell_lines(piece.text)
    if not is_shell(piece.text):
        for number, line in enumerate(piece.text.split("\n"), 1):
            if magic := _MAGIC.match(line):
                yield number, magic[1]
