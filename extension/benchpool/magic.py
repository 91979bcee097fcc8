"""``%%train``: send a cell, with the earlier cells of this session that it needs, to the pool."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from benchpool.cells.magics import OWN

if TYPE_CHECKING:
    from benchpool.cells import NotebookCell
    from benchpool.drafts import Draft, JobOptions
    from benchpool.handles import JobHandle


def register(ipython: Any) -> None:
    """Make ``%%train`` known to an IPython session; what it needs is loaded when it is used."""
    ipython.register_magic_function(
        lambda line, cell: train(ipython, line, cell), magic_kind="cell", magic_name=OWN
    )


def train(ipython: Any, line: str, cell: str) -> JobHandle | None:
    """Send a cell to the training pool.

    It takes the options of ``benchpool submit``, e.g. ``--gpus 2 --time-limit 3600``.
    """
    from benchpool import handles
    from benchpool_scheduler.errors import BenchpoolError

    try:
        options = read_options(line)
        history = list(ipython.user_ns.get("In", []))
        return handles.send(draft_of(cells_of(history, cell), options, os.environ))
    except BenchpoolError as refused:
        print(refused.message, file=sys.stderr)
        return None


def read_options(line: str) -> JobOptions:
    """Read the words after ``%%train``.

    Raises:
        InvalidInput: A word is unknown or a number is none.

    >>> read_options("--gpus 2 --name 'my job'").name
    'my job'
    """
    from benchpool.drafts import JobOptions
    from benchpool_scheduler.contract.options import fields_of, written

    given = vars(_parser().parse_args(shlex.split(line)))
    return JobOptions.of(fields_of(written(given, os.environ)), key=uuid.uuid4().hex)


def cells_of(history: Sequence[str], cell: str) -> list[NotebookCell]:
    """Return the session's inputs in the order in which they ran, and the cell, selected.

    The last entry of the history is the sending itself. Earlier sendings ran elsewhere, and what
    does not parse never ran.
    """
    from benchpool.cells import NotebookCell, magics

    found = []
    for number, text in enumerate(history[:-1]):
        read = magics.read(text)
        if text.strip() and not read.sends and (read.tree is not None or read.opaque):
            found.append(NotebookCell(f"in-{number}", text))
    return [*found, NotebookCell("sent", cell, selected=True)]


def draft_of(cells: Sequence[NotebookCell], options: JobOptions, environ: Any) -> Draft:
    """Draft the job: in this folder, with this Python."""
    from benchpool import drafts, import_problems
    from benchpool.kernel_environment import kernel_environment

    session = environ.get("JPY_SESSION_NAME", "")
    path = Path(session).name if session.endswith(".ipynb") else None
    here = kernel_environment(environ)
    draft = drafts.of_cells(
        cells,
        options,
        kind="magic",
        folder=Path.cwd(),
        interpreter=sys.executable,
        path=path,
        here=here,
    )
    return import_problems.checked(draft, None, here)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        from benchpool_scheduler.errors import InvalidInput

        usage = " ".join(self.format_usage().split()).removeprefix("usage: ")
        raise InvalidInput(f"%%train: {message}; it takes {usage}.", field="options")


def _parser() -> _Parser:
    """Return what reads the options of ``submit``."""
    from benchpool_scheduler.contract.options import OPTIONS, value_of

    parser = _Parser(prog="%%train", add_help=False, allow_abbrev=False)
    for option in OPTIONS:
        takes = value_of(option)
        if takes.type is bool:
            parser.add_argument(option.flag, action="store_true", dest=option.name)
            continue
        parser.add_argument(
            option.flag,
            dest=option.name,
            type=str if takes.duration else takes.type,
            action="append" if takes.many else "store",
            metavar=option.metavar or None,
        )
    return parser
