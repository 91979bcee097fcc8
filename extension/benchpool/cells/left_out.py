"""Lines of a cell that no job runs: installs, and lines that only affect a screen."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from benchpool.cells.magic_calls import MagicCall, magic_call

Level = Literal["error", "warning", "info"]
"""Severity, worst first: it surely fails; it may fail or differ; it is only information."""


@dataclass(frozen=True, slots=True)
class CellNote:
    """Remark about a line of a cell (counted from 1)."""

    level: Level
    text: str
    line: int


TRAIN, SERVE = "train", "serve"
OWN = frozenset({TRAIN, SERVE})
"""Magics that send the cell below them."""

FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
"""Flags for ``compile`` that allow ``await`` in a cell."""

SCREEN_EXTENSIONS = (
    *("autoreload", "benchpool", "tensorboard", "nb_black", "lab_black"),
    *("line_profiler", "memory_profiler"),
)
"""IPython extensions that define no names and do nothing that a job needs."""

_INSTALL = re.compile(
    r"^(\s*)(?:[%!]{1,2}\s*)?(?:(?:python3?|\{sys\.executable\})\s+-m\s+)?"
    r"((?:uv\s+)?pip3?|conda|mamba|micromamba|uv)\s+(?:install|uninstall|update|add)\b(.*)$"
)
_SCREEN = re.compile(
    r"^(\s*)%(?:matplotlib\b|config\s+(?:InlineBackend|ZMQ)|"
    rf"load_ext\s+(?:{'|'.join(SCREEN_EXTENSIONS)})\b|autoreload\b|aimport\b|"
    rf"(?:{'|'.join(sorted(OWN))})\b|"
    r"tensorboard\b|xmode\b|pdb\b|debug\b|who|history\b|lsmagic\b|ls\b|pwd\b|clear\b)"
)


def lines(source: str, is_python: Callable[[str], bool]) -> tuple[str, tuple[CellNote, ...]]:
    """Return the text of a cell without the magic lines that no job runs, and notes about them.

    Args:
        is_python: Returns whether a text is Python, and so no command such as ``pip install x``.
    """
    texts, notes = source.split("\n"), []
    number = 0
    while number < len(texts):
        line = texts[number]
        install, screen = _INSTALL.match(line), _SCREEN.match(line)
        if install is not None and _is_command(line, is_python):
            notes.append(CellNote("warning", _installed(install), number + 1))
        found = install if install is not None and _is_command(line, is_python) else screen
        if found is None:
            number += 1
            continue
        while True:
            continues = texts[number].endswith("\\")
            texts[number] = _passes(found.group(1), line)
            number += 1
            if not continues or number == len(texts):
                break
            line = texts[number]
    return "\n".join(texts), tuple(notes)


def _is_command(line: str, is_python: Callable[[str], bool]) -> bool:
    """Return whether a line is a command such as ``pip install x`` (automagic) and not Python."""
    return not is_python(line.strip())


def calls(source: str) -> tuple[str, tuple[CellNote, ...]]:
    """Return the same for a cell in which IPython has rewritten the magics as Python calls.

    >>> calls("get_ipython().run_line_magic('matplotlib', 'inline')")[0]
    "pass  # left out by benchpool: get_ipython().run_line_magic('matplotlib', 'inline')"
    """
    if "get_ipython()." not in source:
        return source, ()
    texts, notes = source.split("\n"), []
    for node, call in _statements(source):
        magic = f"%{call.name} {call.line}" if call.name else f"!{call.line}"
        install = _INSTALL.match(magic)
        if install is None and not _SCREEN.match(magic):
            continue
        first, last = node.lineno, node.end_lineno or node.lineno
        if last > len(texts) or not _is_alone(node, texts[first - 1], texts[last - 1]):
            continue
        if install is not None:
            notes.append(CellNote("warning", _installed(install), first))
        texts[first - 1] = _passes(texts[first - 1][: node.col_offset], texts[first - 1])
        texts[first:last] = [""] * (last - first)
    return "\n".join(texts), tuple(notes)


def _is_alone(node: ast.Expr, first: str, last: str) -> bool:
    """Return whether a statement is alone in its lines, apart from a comment."""
    before = first.encode("utf-8", "replace")[: node.col_offset].strip()
    after = last.encode("utf-8", "replace")[node.end_col_offset :].strip()
    return not before and after[:1] in (b"", b"#")


def cell_magic(source: str) -> str | None:
    """Return a cell magic with its body as the user wrote it; None for any other cell.

    >>> cell_magic("get_ipython().run_cell_magic('capture', '', '%pip install x')").split(chr(10))
    ['%%capture', '%pip install x']
    """
    if "run_cell_magic" not in source:
        return None
    tree = _tree(source)
    node = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return None
    call = magic_call(node.value)
    if call is None or not call.exact or call.name is None or call.body is None:
        return None
    return f"{f'%%{call.name} {call.line}'.rstrip()}\n{call.body}"


def _statements(source: str) -> Iterator[tuple[ast.Expr, MagicCall]]:
    """Yield the statements that call the shell, or a magic without a body."""
    tree = _tree(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = magic_call(node.value)
            if call is not None and call.exact and call.body is None:
                yield node, call


def _tree(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = compile(source, "<cell>", "exec", FLAGS)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree if isinstance(tree, ast.Module) else None


def _passes(indent: str, line: str) -> str:
    return f"{indent}pass  # left out by benchpool: {line.strip()}"


def _installed(found: re.Match[str]) -> str:
    packages = " ".join(word for word in found.group(3).split() if not word.startswith("-"))
    return (
        f"the installation of {packages or 'packages'} is left out: the job has the packages of "
        "its own environment (on one machine that of this notebook, on a cluster its image)"
    )
