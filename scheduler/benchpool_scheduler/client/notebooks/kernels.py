"""Lookup of the Python of a notebook's kernel, if that kernel is installed on this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

OF_ANY_PYTHON = frozenset({"python", "python2", "python3"})
"""Kernel names that every installation of Jupyter gives to its own Python."""

_NAME = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_VALUED = frozenset({"-X", "-W"})
"""Options of Python whose value may be a separate word."""
_SHARED = ("/usr/local/share/jupyter", "/usr/share/jupyter")


@dataclass(frozen=True, slots=True)
class NotebookPython:
    """Python that a notebook runs with.

    Attributes:
        path: Path of the interpreter.
        why: Explanation, as a sentence without a full stop.
    """

    path: str
    why: str


def python_of(kernel: str | None, usual: str, environ: Mapping[str, str]) -> NotebookPython:
    """Return the Python of a kernel that is installed here, else the usual one.

    Args:
        kernel: Kernel name in the notebook, or None.
        usual: Python of the terminal.
        environ: This process's environment, which determines where kernels are installed.
    """
    current = f"runs with {usual}, the Python of this terminal"
    if kernel is None or kernel in OF_ANY_PYTHON:
        return NotebookPython(usual, current)
    folder = _folder_of(kernel, usual, environ)
    if folder is None:
        return NotebookPython(usual, f"has the kernel {kernel}, not found here: it {current}")
    word = _program(folder)
    python = None if word is None else _found(word, folder, environ)
    if python is None:
        runs = f"no Python ({word})" if word else "no Python"
        why = f"has the kernel {kernel}, which names {runs} that exists here: it {current}"
        return NotebookPython(usual, why)
    return NotebookPython(python, f"runs with {python}, the Python of its kernel {kernel}")


def _folder_of(kernel: str, usual: str, environ: Mapping[str, str]) -> Path | None:
    """Return the folder of a kernel spec. As in Jupyter, names are case-insensitive."""
    if not _NAME.fullmatch(kernel):
        return None
    for place in _data_folders(usual, environ):
        try:
            named = sorted(each for each in (place / "kernels").iterdir())
        except OSError:
            continue
        for each in named:
            if each.name.lower() == kernel.lower() and (each / "kernel.json").is_file():
                return each
    return None


def _data_folders(usual: str, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield Jupyter's folders of kernels, those of an active environment before the user's."""
    yield from map(Path, filter(None, environ.get("JUPYTER_PATH", "").split(os.pathsep)))
    active = [environ.get(each) for each in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    for prefix in dict.fromkeys(filter(None, active)):
        yield Path(prefix, "share", "jupyter")
    home = environ.get("HOME")
    if own := environ.get("JUPYTER_DATA_DIR"):
        yield Path(own)
    elif home and sys.platform == "darwin":
        yield Path(home, "Library", "Jupyter")
    elif data := environ.get("XDG_DATA_HOME") or (home and f"{home}/.local/share"):
        yield Path(data, "jupyter")
    for python in dict.fromkeys((usual, sys.executable)):
        if os.path.isabs(python):
            yield Path(python).parent.parent / "share" / "jupyter"
    yield from map(Path, _SHARED)


def _program(folder: Path) -> str | None:
    """Return the program that a kernel spec starts. None if it is not a Python with ipykernel."""
    try:
        spec = json.loads((folder / "kernel.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    argv = spec.get("argv") if isinstance(spec, dict) else None
    if not isinstance(argv, list) or not argv or not all(isinstance(it, str) for it in argv):
        return None
    language = str(spec.get("language") or "python").lower()
    return str(argv[0]) if language == "python" and runs_ipykernel(argv) else None


def runs_ipykernel(argv: Sequence[str]) -> bool:
    """Return whether the first word is a Python that runs ipykernel, unlike ``conda run``.

    >>> runs_ipykernel(["python", "-X", "dev", "-m", "ipykernel_launcher", "-f", "…"])
    True
    >>> runs_ipykernel(["conda", "run", "-n", "torch", "python", "-m", "ipykernel_launcher"])
    False
    """
    if "-m" not in argv:
        return False
    at = argv.index("-m")
    pairs = pairwise(argv[:at])
    options = all(word.startswith("-") or before in _VALUED for before, word in pairs)
    return options and "".join(argv[at + 1 : at + 2]).startswith("ipykernel")


def _found(word: str, folder: Path, environ: Mapping[str, str]) -> str | None:
    """Return the program. A bare name is looked up beside the kernel spec, then on the path."""
    beside = Path(*folder.parts[:-4], "bin", word)
    for each in (word, str(beside) if "/" not in word else ""):
        if os.path.isabs(each) and os.path.isfile(each) and os.access(each, os.X_OK):
            return each
    found = shutil.which(word, path=environ.get("PATH", ""))
    return found if found and os.path.isabs(found) else None
