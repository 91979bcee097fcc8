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

    Options: ``--gpus G --workers W --project P --name N --priority P --time-limit SECONDS``, also
    ``--gpu-model M`` (best first, may be repeated) and ``--spread``.
    """
    from benchpool import handles
    from benchpool_scheduler.errors import BenchpoolError

    try:
        options = read_options(line)
        history = list(ipython.user_ns.get("In", []))
        draft = draft_of(cells_of(history, cell), options, os.environ)
        for problem in draft.problems:
            if problem.level == "warning":
                print(f"{draft.place(problem)}{problem.text}.", file=sys.stderr)
        return handles.send(draft)
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

    options = _Parser().parse_args(shlex.split(line))
    return JobOptions(
        gpus=options.gpus,
        workers=options.workers,
        project=options.project,
        name=options.name,
        time_limit_s=options.time_limit,
        priority=options.priority,
        gpu_models=options.gpu_models,
        spread=options.spread,
        key=uuid.uuid4().hex,
    )


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
    from benchpool import drafts
    from benchpool.kernel_environment import kernel_environment

    session = environ.get("JPY_SESSION_NAME", "")
    path = Path(session).name if session.endswith(".ipynb") else None
    return drafts.of_cells(
        cells,
        options,
        kind="magic",
        folder=Path.cwd(),
        interpreter=sys.executable,
        path=path,
        here=kernel_environment(environ),
    )


class _Parser(argparse.ArgumentParser):
    def __init__(self) -> None:
        super().__init__(prog="%%train", add_help=False, allow_abbrev=False)
        self.add_argument("--gpus", type=int, default=1)
        self.add_argument("--workers", type=int, default=1)
        self.add_argument("--project")
        self.add_argument("--name")
        self.add_argument("--priority", type=int)
        self.add_argument("--time-limit", type=int, dest="time_limit")
        self.add_argument("--gpu-model", action="append", default=[], dest="gpu_models")
        self.add_argument("--spread", action="store_true")

    def error(self, message: str) -> NoReturn:
        from benchpool_scheduler.errors import InvalidInput

        usage = " ".join(self.format_usage().split()).removeprefix("usage: ")
        raise InvalidInput(f"%%train: {message}; it takes {usage}.", field="options")
