"""IPython syntax in cells: the lines that are kept, left out, unwrapped or rejected.

``read`` returns two texts with the same number of lines: ``python`` for the analysis and ``run``
for the job. Installs are left out, since the job runs in the notebook's own environment. So are
lines that only affect a screen. Nothing is executed here.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache

from IPython.core.inputtransformer2 import TransformerManager

from benchpool.cells import left_out, magic_calls, magic_meanings, same_forms
from benchpool.cells.left_out import OWN, CellNote
from benchpool.cells.magic_meanings import LINE_MAGICS


@dataclass(frozen=True, slots=True)
class ParsedCell:
    """Parsed text of a cell.

    Attributes:
        tree: The Python in it, with the names that its magics use and define; None if none.
        run: Text that the job runs.
        opaque: It contains another language or an unknown magic.
        sends: It uses a magic of benchpool.
        put_in: Names that IPython substitutes in its magics and shell lines.
        braced: Those of them that stand alone in braces (``{x}``).
    """

    tree: ast.Module | None
    run: str
    notes: tuple[CellNote, ...] = ()
    opaque: bool = False
    sends: bool = False
    put_in: frozenset[str] = frozenset()
    braced: frozenset[str] = frozenset()


_SHELLS = magic_meanings.words(
    "bash sh script cmd powershell system sx ! zsh python python3 pypy perl ruby"
)
_SHOWN = frozenset({"html", "HTML", "javascript", "js", "latex", "markdown", "svg", "SVG"})
_OTHER = _SHOWN | {"writefile", "file", "R", "sql", "cython", "python2"}
_WRITES = re.compile(r"\bwritefile\b|%%file\b|[\"\']file[\"\']")
_FIRST_WORD = re.compile(r"^\s*%%(!|[A-Za-z_]\w*)[^\n]*")


@lru_cache(maxsize=1024)
def read(source: str) -> ParsedCell:
    """Parse the text of a code cell."""
    return _read(source)


def _read(source: str) -> ParsedCell:
    tree = _parsed(source)
    if tree is not None:
        written = left_out.cell_magic(source)
        inner = None if written is None else _read(written)
        if inner is not None and inner.run != written and not inner.sends:
            return inner
        run, notes = left_out.calls(source)
        return _with_names(ParsedCell(tree if run == source else _parsed(run), run, notes))
    first = _first_line(source)
    magic = _FIRST_WORD.match(source.split("\n")[first - 1]) if first else None
    if magic is not None:
        return _cell_magic(source, magic.group(1), first)
    run, notes = left_out.lines(source, is_python=lambda text: _parsed(text) is not None)
    return _transformed(run, notes)


def _code_of(text: str) -> ast.Module | None:
    """Return a separate tree for the Python in a magic, which may contain magics too."""
    return _read(text).tree


def _cell_magic(source: str, name: str, line: int) -> ParsedCell:
    if name in OWN:
        return _sending(source, name, line)
    if name in magic_meanings.PYTHON_BODIES:
        return _unwrapped(source, name, line)
    notes: tuple[CellNote, ...] = ()
    if name in _SHELLS:
        text = f"%%{name} runs again in the job, with this machine's tools"
        notes = (CellNote("warning", text, line),)
    elif name not in _OTHER:
        text = f"the names that %%{name} defines are not known; the job runs the cell unchanged"
        notes = (CellNote("warning", text, line),)
    return _with_names(ParsedCell(_parsed(_as_python(source)), source, notes, opaque=True))


def _sending(source: str, name: str, line: int) -> ParsedCell:
    text = f"this cell sends itself with %%{name}: remove that line, or run the cell instead"
    return ParsedCell(None, source, (CellNote("error", text, line),), opaque=True, sends=True)


def _unwrapped(source: str, name: str, line: int) -> ParsedCell:
    """Parse a cell whose magic runs its body as Python (``%%time``)."""
    lines = source.split("\n")
    inner = _read("\n".join([*[""] * line, *lines[line:]]))
    run = "\n".join([*lines[:line], *inner.run.split("\n")[line:]])
    given = lines[line - 1].strip()[len(name) + 2 :]
    meaning = magic_meanings.of_magic(name, given, "")
    tree = inner.tree
    if tree is not None:
        body = magic_calls.around(name, meaning, line, tree.body, _code_of)
        tree = ast.Module(body, [])
    return _with_names(ParsedCell(tree, run, inner.notes, inner.opaque, inner.sends))


def _with_names(cell: ParsedCell) -> ParsedCell:
    if cell.tree is None:
        return cell
    calls = [*magic_calls.calls_in(cell.tree)]
    own = [each for each in calls if each.name in OWN and each.body is not None]
    if own:  # as a session stores the code it ran
        return _sending(cell.run, own[0].name or "", own[0].node.lineno)
    meanings = [each.meaning for each in calls]
    put_in = frozenset[str]().union(*(each.put_in for each in meanings))
    braced = frozenset[str]().union(*(each.alone for each in meanings))
    return replace(cell, put_in=put_in, braced=braced)


def writes_file(cell: ParsedCell) -> str | None:
    """Return the file that a cell writes its text to (``%%writefile mine.py``), or None.

    >>> text = chr(10).join(["%%writefile -a mine.py", "x = 1"])
    >>> writes_file(read(text))
    'mine.py'
    """
    words = [word for word in _written(cell) if not word.startswith("-")]
    return words[0].strip("\"'") if words else None


def appends_to_file(cell: ParsedCell) -> bool:
    """Return whether a cell appends its text to a file (``%%writefile -a mine.py``)."""
    return not {"-a", "--append"}.isdisjoint(_written(cell))


def _written(cell: ParsedCell) -> list[str]:
    if cell.tree is None or not _WRITES.search(cell.run):
        return []
    calls = magic_calls.calls_in(cell.tree)
    lines = [
        each.line for each in calls if each.name in {"writefile", "file"} and each.body is not None
    ]
    return lines[0].split() if lines else []


def gives_result(cell: ParsedCell) -> bool:
    """Return whether a cell ends with a value that is shown (and not with a call that prints)."""
    if cell.tree is None or not cell.tree.body or cell.run.rstrip().endswith(";"):
        return False
    last = cell.tree.body[-1]
    if not isinstance(last, ast.Expr):
        return False
    called = last.value.func if isinstance(last.value, ast.Call) else None
    if isinstance(called, ast.Attribute):
        return called.attr not in {"system", "run_cell_magic"}
    return not (isinstance(called, ast.Name) and called.id in {"print", "display"})


def _transformed(source: str, notes: tuple[CellNote, ...]) -> ParsedCell:
    text = _as_python(source)
    tree = _parsed(text)
    if tree is None and _is_automagic(source):
        tree = _parsed(_as_python(f"%{source.strip()}"))
    if tree is not None:
        return _with_names(ParsedCell(tree, source, notes))
    try:
        ast.parse(text)
    except (SyntaxError, ValueError) as bad:
        line = getattr(bad, "lineno", None) or 1
        message = getattr(bad, "msg", None) or str(bad)
        return ParsedCell(
            None, source, (*notes, CellNote("error", f"this is not Python: {message}", line))
        )
    raise AssertionError("ast.parse accepts the cell")


def _is_automagic(source: str) -> bool:
    """Return whether a cell is one magic written without ``%`` (``cd data``)."""
    words = source.split(maxsplit=1)
    return len(source.splitlines()) == 1 and words[:1] != [] and words[0] in LINE_MAGICS


def _as_python(source: str) -> str:
    """Return a cell as IPython translates it to Python; its first text keeps its line number."""
    empty = max(_first_line(source) - 1, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return "\n" * empty + str(_MANAGER.transform_cell(source))
        except UnicodeEncodeError:  # a lone surrogate, which Python's tokenizer rejects since 3.12
            return source


_MANAGER = TransformerManager()


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the kernel shows them to the user
            tree = compile(text, "<cell>", "exec", left_out.FLAGS)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(tree, ast.Module):
        return None
    return magic_calls.written_out(text, same_forms.plain(text, tree), _code_of)


def _first_line(source: str) -> int:
    """Return the number of the first line that is not empty, or 0."""
    for number, line in enumerate(source.split("\n"), start=1):
        if line.strip():
            return number
    return 0
