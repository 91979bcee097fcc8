"""IPython's own syntax in cells: what is kept, left out, unwrapped or refused.

``read`` gives two texts with the same number of lines: ``python`` for the analysis, ``run`` for
the job. Left out are installs (the job runs in the notebook's own environment) and what only
concerns a screen. Nothing is executed here.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from IPython.core.inputtransformer2 import TransformerManager

from benchpool.cells import same_forms

Level = Literal["error", "warning", "info"]
"""It fails for sure; it may fail, or be otherwise than here; it is only said. Worst first."""


@dataclass(frozen=True, slots=True)
class CellNote:
    """Something to say about a line of a cell (from 1)."""

    level: Level
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class ParsedCell:
    """A cell's text as understood.

    Attributes:
        tree: The Python in it; None when there is none to analyse.
        run: What the job runs.
        opaque: It holds another language, or a magic of which nothing is known.
        sends: It uses a magic of our own.
    """

    tree: ast.Module | None
    run: str
    notes: tuple[CellNote, ...] = ()
    opaque: bool = False
    sends: bool = False


_UNWRAPPED = frozenset({"time", "timeit", "capture", "prun", "memit", "mprun", "snakeviz"})
_SHELLS = frozenset({"bash", "sh", "script", "cmd", "powershell", "system", "sx", "!", "zsh"})
_SHOWN = frozenset({"html", "HTML", "javascript", "js", "latex", "markdown", "svg", "SVG"})
_OTHER = _SHOWN | {"writefile", "file", "perl", "ruby", "R", "sql", "cython", "pypy", "python2"}
TRAIN, SERVE = "train", "serve"
OWN = frozenset({TRAIN, SERVE})
"""Magics that send the cell below them."""

SCREEN_EXTENSIONS = (
    *("autoreload", "benchpool", "tensorboard", "nb_black", "lab_black"),
    *("line_profiler", "memory_profiler"),
)
"""Extensions of IPython that define no names, and do nothing that a job needs."""

_INSTALL = re.compile(
    r"^(\s*)(?:[%!]{1,2}\s*)?(?:(?:python3?|\{sys\.executable\})\s+-m\s+)?"
    r"((?:uv\s+)?pip3?|conda|mamba|micromamba|uv)\s+(?:install|uninstall|update|add)\b(.*)$"
)
_SCREEN = re.compile(
    r"^(\s*)%(?:matplotlib\b|config\s+(?:InlineBackend|ZMQ)|"
    rf"load_ext\s+(?:{'|'.join(SCREEN_EXTENSIONS)})\b|autoreload\b|aimport\b|"
    r"tensorboard\b|xmode\b|pdb\b|debug\b|who|history\b|lsmagic\b|ls\b|pwd\b|clear\b)"
)
_WRITTEN = re.compile(r"\s*%%(?:writefile|file)\s+(?:-a\s+)?(\S+)")
_FIRST_WORD = re.compile(r"^\s*%%(!|[A-Za-z_]\w*)[^\n]*")


@lru_cache(maxsize=2048)
def read(source: str) -> ParsedCell:
    """Understand the text of a code cell."""
    tree = _parsed(source)
    if tree is not None:
        return ParsedCell(tree, source)
    first = _first_line(source)
    magic = _FIRST_WORD.match(source.split("\n")[first - 1]) if first else None
    if magic is not None:
        return _cell_magic(source, magic.group(1), first)
    run, notes = _without_left_out(source)
    return _transformed(run, notes)


def _cell_magic(source: str, name: str, line: int) -> ParsedCell:
    if name in OWN:
        text = f"this cell sends itself with %%{name}: take that line away, or run the cell instead"
        return ParsedCell(None, source, (CellNote("error", text, line),), opaque=True, sends=True)
    if name in _UNWRAPPED:
        lines = source.split("\n")
        inner = read("\n".join([*[""] * line, *lines[line:]]))
        return ParsedCell(
            _wrapped(name, lines[line - 1], inner.tree),
            source,
            inner.notes,
            inner.opaque,
            inner.sends,
        )
    if name in _SHELLS:
        text = f"%%{name} runs again in the job, with this machine's tools"
        return ParsedCell(None, source, (CellNote("warning", text, line),), opaque=True)
    if name in _OTHER:
        return ParsedCell(None, source, opaque=True)
    text = f"what %%{name} defines is not known here; the job runs the cell as it stands"
    return ParsedCell(None, source, (CellNote("warning", text, line),), opaque=True)


def _wrapped(name: str, magic: str, tree: ast.Module | None) -> ast.Module | None:
    """What ``%%timeit`` runs binds no name; ``%%capture out`` binds one."""
    if tree is None or not tree.body:
        return tree
    if name == "timeit":
        function = ast.parse("def __timed__(): pass\n__timed__()")
        first = function.body[0]
        if isinstance(first, ast.FunctionDef):
            first.body = tree.body
        return function
    words = [word for word in magic.split()[1:] if word.isidentifier()]
    if name == "capture" and words:
        return ast.Module([*tree.body, *ast.parse(f"{words[0]} = object()").body], [])
    return tree


def writes_file(cell: ParsedCell) -> str | None:
    """Return the file that a cell's text is written to (``%%writefile mine.py``).

    >>> text = chr(10).join(["%%writefile -a mine.py", "x = 1"])
    >>> writes_file(read(text))
    'mine.py'
    """
    found = _WRITTEN.match(cell.run) if cell.opaque else None
    return found.group(1) if found else None


def gives_result(cell: ParsedCell) -> bool:
    """Say whether a cell ends with a value that is shown (and not with what prints)."""
    if cell.tree is None or not cell.tree.body or cell.run.rstrip().endswith(";"):
        return False
    last = cell.tree.body[-1]
    if not isinstance(last, ast.Expr):
        return False
    called = last.value.func if isinstance(last.value, ast.Call) else None
    return not (isinstance(called, ast.Name) and called.id in {"print", "display"})


def _without_left_out(source: str) -> tuple[str, tuple[CellNote, ...]]:
    lines, notes = source.split("\n"), []
    number = 0
    while number < len(lines):
        line = lines[number]
        install, screen = _INSTALL.match(line), _SCREEN.match(line)
        if install is not None and _is_command(line):
            notes.append(CellNote("warning", _installed(install), number + 1))
        found = install if install is not None and _is_command(line) else screen
        if found is None:
            number += 1
            continue
        while True:
            continues = lines[number].endswith("\\")
            lines[number] = f"{found.group(1)}pass  # left out by benchpool: {line.strip()}"
            number += 1
            if not continues or number == len(lines):
                break
            line = lines[number]
    return "\n".join(lines), tuple(notes)


def _is_command(line: str) -> bool:
    """Say whether a line is a command such as ``pip install x`` (automagic), and not Python."""
    return _parsed(line.strip()) is None


def _installed(found: re.Match[str]) -> str:
    packages = " ".join(word for word in found.group(3).split() if not word.startswith("-"))
    return (
        f"the install of {packages or 'packages'} is left out: the job finds what its own "
        "environment has: on one machine this notebook's, on a cluster its image's"
    )


def _transformed(source: str, notes: tuple[CellNote, ...]) -> ParsedCell:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            text = _MANAGER.transform_cell(source)
        except UnicodeEncodeError:  # half a character, which Python's tokenizer refuses since 3.12
            text = source
    tree = _parsed(text)
    if tree is not None:
        return ParsedCell(tree, source, notes)
    try:
        ast.parse(text)
    except (SyntaxError, ValueError) as bad:
        line = getattr(bad, "lineno", None) or 1
        said = getattr(bad, "msg", None) or str(bad)
        return ParsedCell(
            None, source, (*notes, CellNote("error", f"this is not Python: {said}", line))
        )
    raise AssertionError("it parses now")


_MANAGER = TransformerManager()


_FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # a cell may await


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the kernel says them to the user
            tree = compile(text, "<cell>", "exec", _FLAGS)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return same_forms.plain(text, tree) if isinstance(tree, ast.Module) else None


def _first_line(source: str) -> int:
    """Return the number of the first line with something in it; 0 when there is none."""
    for number, line in enumerate(source.split("\n"), start=1):
        if line.strip():
            return number
    return 0
