"""Parsing of command-line words into what a job runs. Pure, except for checks of files.

``benchpool submit [OPTIONS] (SCRIPT | NOTEBOOK | -m MODULE | -- COMMAND...) [ARGS...]``: options of
benchpool come first. From the script, module or command on, every word belongs to the job.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path, PurePath

import click

from benchpool_scheduler.cli import notebooks
from benchpool_scheduler.contract import (
    CommandEntry,
    Entry,
    ModuleEntry,
    NotebookEntry,
    PodsEntry,
    ScriptEntry,
    durations,
)
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import visible


def split(words: Sequence[str], options: Sequence[click.Parameter]) -> tuple[list[str], list[str]]:
    """Split words into those of benchpool and those of the job.

    The job's words begin with the script, ``-m`` or ``--``, after benchpool's own arguments.
    """
    valued = {
        name
        for option in options
        if isinstance(option, click.Option) and not option.is_flag and not option.count
        for name in option.opts
    }
    own = sum(isinstance(option, click.Argument) for option in options)
    at = 0
    while at < len(words):
        word = words[at]
        if own and not word.startswith("-"):
            own, at = own - 1, at + 1
            continue
        if word in ("--", "-m") or not word.startswith("-") or word == "-":
            break
        at += 2 if word in valued else 1
    return list(words[:at]), list(words[at:])


def read(words: Sequence[str], folder: Path) -> Entry:
    """Return the entry that the job's words describe.

    Raises:
        InvalidInput: There is nothing to run, or no Python script in this folder.

    >>> read(["-m", "package.train", "--lr", "3"], Path())
    ModuleEntry(module='package.train', args=['--lr', '3'])
    """
    match list(words):
        case ["--", command, *rest]:
            return CommandEntry([command, *rest])
        case ["-m", module, *rest]:
            return ModuleEntry(module, rest)
        case ["--"] | ["-m"] | []:
            raise InvalidInput(
                "There is nothing to run. Name a SCRIPT or NOTEBOOK, -m MODULE, or -- COMMAND.",
                field="entry",
            )
        case [notebook, *rest] if notebook.endswith(".ipynb"):
            if rest:
                raise InvalidInput(
                    f"A notebook takes no arguments, but {rest[0]} follows {notebook}. Put "
                    "options of benchpool before the notebook.",
                    field="entry",
                )
            path = _below(notebook, folder)
            digest = hashlib.sha256(notebooks.cells_of(path)).hexdigest()
            return NotebookEntry(digest, path.name)
        case [script, *rest]:
            return ScriptEntry(_script(script, folder), rest)
    raise AssertionError("all lists are covered")


def parameters_after(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of the job, and the ``NAME=VALUE`` of each ``-p`` after a notebook.

    >>> parameters_after(["a.ipynb", "-p", "lr=0.1"]), parameters_after(["a.py", "-p", "x"])
    ((['a.ipynb'], ['lr=0.1']), (['a.py', '-p', 'x'], []))
    """
    kept, pairs = list(words[:1]), []
    if not kept or not kept[0].endswith(".ipynb"):
        return list(words), []
    rest = iter(words[1:])
    for word in rest:
        if word in ("-p", "--parameter"):
            pairs.append(next(rest, ""))
        elif word.startswith("--parameter="):
            pairs.append(word.partition("=")[2])
        else:
            kept.append(word)
    return kept, pairs


def name_of(entry: Entry) -> str:
    r"""Return the default name of a job.

    >>> name_of(ScriptEntry("src/train.py"))
    'train'
    >>> name_of(ScriptEntry("soft\N{SOFT HYPHEN}hyphen.py"))
    'soft-hyphen'
    """
    match entry:
        case ScriptEntry(path=path):
            name = PurePath(path).stem
        case ModuleEntry(module=module):
            name = module
        case CommandEntry(argv=argv):
            name = PurePath(argv[0]).name
        case NotebookEntry(name=file):
            name = PurePath(file).stem
        case PodsEntry(pods=pods):
            name = pods[0]
    seen = "".join(each if visible(each) == each else "-" for each in name)
    return seen[:100] or "job"


def interpreter(environ: Mapping[str, str]) -> str:
    """Return the Python that a job runs with: the one that ``python`` means in this terminal.

    It is that of the active virtual or conda environment, else ``python3`` or ``python`` on the
    path, else the one that runs benchpool.
    """
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = environ.get(variable)
        if prefix and os.access(python := os.path.join(prefix, "bin", "python"), os.X_OK):
            return python
    path = environ.get("PATH")
    return shutil.which("python3", path=path) or shutil.which("python", path=path) or sys.executable


def _below(word: str, folder: Path) -> Path:
    """Return the path of a file below the folder that is sent. Errors: InvalidInput."""
    path = Path(os.path.normpath(folder / word))
    if not path.is_file():
        raise InvalidInput(
            f"There is no file {word} in {folder}. Name a script or notebook below this folder, "
            "or a command after `--`.",
            field="entry",
        )
    if not path.is_relative_to(folder):
        raise InvalidInput(
            f"{word} is not below {folder}, whose files are sent with the job. Run benchpool in "
            "a folder that contains it.",
            field="entry",
        )
    return path


def _script(word: str, folder: Path) -> str:
    path = _below(word, folder)
    if path.suffix not in (".py", ".pyw", ""):
        raise InvalidInput(
            f"{word} is not a Python script. Run it as a command: `benchpool submit -- ./{word}`.",
            field="entry",
        )
    return path.relative_to(folder).as_posix()


def instant(text: str | None, now: datetime, option: str) -> datetime | None:
    """Parse a time (RFC 3339) or an age (``90``, ``10m``, ``2h``, ``1d``); None stays None.

    Raises:
        InvalidInput: The text is neither. ``option`` is named, without its dashes.

    >>> instant("2h", datetime.fromisoformat("2026-01-01T12:00:00+00:00"), "since").isoformat()
    '2026-01-01T10:00:00+00:00'
    """
    if text is None:
        return None
    ago = durations.seconds(text)
    if ago is not None:
        return now - timedelta(seconds=min(ago, 10 * 366 * 86400))
    try:
        at = datetime.fromisoformat(text)
    except ValueError as bad:
        raise InvalidInput(
            f"--{option} is {text}. "
            "Give a time such as 2026-01-31T12:00:00Z, or an age such as 10m.",
            field=option,
        ) from bad
    return at.astimezone()
