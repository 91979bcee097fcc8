"""Check of the imports of a submission: a script, a module, or the cells of a notebook file."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path, PurePath

from benchpool_scheduler.client import notebooks
from benchpool_scheduler.client.imports.asking import job_environ
from benchpool_scheduler.client.imports.checking import MissingModule, missing
from benchpool_scheduler.client.imports.own_files import OwnModules
from benchpool_scheduler.client.imports.reading import Piece
from benchpool_scheduler.client.imports.unseen import unseen_here
from benchpool_scheduler.contract import JobSubmission, ModuleEntry, ScriptEntry

TOP = PurePath()

_NOT_PYTHON = re.compile(r"^(\s*)[%!?].*$", re.MULTILINE)
_MAKES_MODULES = re.compile(r"^\s*(?:!|%(?!matplotlib|time|autoreload))", re.MULTILINE)


def missing_of(
    folder: Path, submission: JobSubmission, environ: Mapping[str, str], notebook: str | None = None
) -> list[MissingModule]:
    """Return the imports of a submission from a folder that would fail. Commands are not checked.

    Args:
        environ: This process's environment.
        notebook: Path of a notebook, below the folder.
    """
    entry = submission.entry
    if isinstance(entry, ScriptEntry):
        return missing_of_script(folder / entry.path, submission, environ)
    if isinstance(entry, ModuleEntry):
        return _of_pieces(_of_module(entry.module, folder, submission), folder, submission, environ)
    if notebook is not None:
        # A notebook sent from the terminal runs in a copy of the folder, so its imports start
        # there.
        pieces, loose = _of_notebook(folder / notebook)
        return _of_pieces(pieces, folder, submission, environ, loose=loose)
    return []


def missing_of_script(
    script: Path, submission: JobSubmission, environ: Mapping[str, str]
) -> list[MissingModule]:
    """Return the failing imports of a script that runs in a copy of its files.

    Args:
        environ: This process's environment.
    """
    entry = submission.entry
    above = PurePath(entry.path).parent if isinstance(entry, ScriptEntry) else TOP
    pieces = OwnModules(script.parent).read(script.name)
    return _of_pieces(pieces, script.parent, submission, environ, above=above)


def _of_pieces(
    pieces: list[Piece],
    root: Path,
    submission: JobSubmission,
    environ: Mapping[str, str],
    *,
    above: PurePath = TOP,
    loose: bool = False,
) -> list[MissingModule]:
    """Check pieces of code. ``above``: folder in the job's copy of the code's own modules."""
    paths = [PurePath(each.path) for each in submission.files]
    beside = [str(each.relative_to(above)) for each in paths if each.is_relative_to(above)]
    return missing(
        pieces,
        root,
        submission.interpreter or "python3",
        job_environ(environ, submission.env),
        sent=frozenset(beside) or None,
        loose=loose,
        unseen=unseen_here(environ),
    )


def _of_module(module: str, folder: Path, submission: JobSubmission) -> list[Piece]:
    """Return ``-m MODULE`` as pieces: its import, and the ``__main__`` of a package."""
    try:
        named = _importing(module)
    except SyntaxError:  # Python itself reports the invalid name
        return []
    inside = f"{module.replace('.', '/')}/__main__.py"
    sent = {each.path for each in submission.files}
    main = OwnModules(folder).read(inside) if not sent or inside in sent else []
    return [Piece(f"-m {module}", named, ""), *main]


def _importing(module: str) -> ast.Module:
    """Return the tree of an import with line 0, outside the user's code. Errors: SyntaxError."""
    return ast.increment_lineno(ast.parse(f"import {module}"), -1)


def _of_notebook(path: Path) -> tuple[list[Piece], bool]:
    """Return the import of ipykernel and the Python cells of a notebook as pieces.

    The second value is whether other cells may create modules.
    """
    pieces, loose = [Piece(path.name, _importing("ipykernel"), "")], False
    for number, cell in enumerate(notebooks.read(path).cells, 1):
        if not cell.is_run:
            continue
        loose = loose or _MAKES_MODULES.search(cell.source) is not None
        try:
            text = _NOT_PYTHON.sub(r"\1pass", cell.source)
            pieces.append(Piece(f"cell {number}", ast.parse(text), text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            loose = True
    return pieces, loose
