"""Selection of a job's Python in the terminal, and the explanation of the choice."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from benchpool_scheduler.cli import entry as entries
from benchpool_scheduler.client import notebooks
from benchpool_scheduler.client.notebooks.kernels import NotebookPython, python_of
from benchpool_scheduler.contract import CommandEntry, Entry
from benchpool_scheduler.errors import InvalidInput

OF_IMAGE = "python3"


def python_for(
    entry: Entry,
    environ: Mapping[str, str],
    folder: Path,
    *,
    asked: str | None = None,
    image: str | None = None,
    notebook: str | None = None,
) -> NotebookPython:
    """Return the Python of a job, from ``--python``, the image, its kernel or the terminal.

    Args:
        folder: Current folder.
        asked: Value of ``--python``.
        image: Value of ``--image``. The image has its own Python.
        notebook: Path of a notebook, below the folder.

    Raises:
        InvalidInput: There is no such Python, or ``--python`` was given for a command.
    """
    if asked is not None:
        if isinstance(entry, CommandEntry):
            raise InvalidInput(
                "--python is for a SCRIPT, -m MODULE or a NOTEBOOK. Name the Python of a command "
                f"in the command: `-- {asked} ...`.",
                field="python",
            )
        path = asked if image else _there(asked, environ, folder)
        return NotebookPython(path, f"runs with {path}, from --python")
    if image:
        return NotebookPython(OF_IMAGE, f"runs with the {OF_IMAGE} of the image {image}")
    usual = entries.interpreter(environ)
    if notebook is None:
        return NotebookPython(usual, f"runs with {usual}, the Python of this terminal")
    return python_of(notebooks.read(folder / notebook).kernel, usual, environ)


def _there(asked: str, environ: Mapping[str, str], folder: Path) -> str:
    """Return the absolute path of a program named as in a shell. Errors: InvalidInput."""
    path = os.path.expanduser(asked)
    if "/" not in path:
        found = shutil.which(path, path=environ.get("PATH", ""))
    else:
        whole = os.path.normpath(folder / path)
        found = whole if os.path.isfile(whole) and os.access(whole, os.X_OK) else None
    if found is None:
        raise InvalidInput(
            f"There is no program {asked}. Give --python the path of a Python, or a name such as "
            "python3.12 that is on the path.",
            field="python",
        )
    # An entry of PATH may be relative.
    return os.path.join(folder, found)
