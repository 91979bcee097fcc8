"""Code that this process ran so far and that a function may need: IPython cells, or a script.

Works on every Python from 3.9, with its standard library.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from benchpool.functions.rejected import InvalidInput
from benchpool.functions.remote_function import RemoteFunction


@dataclass(frozen=True)
class RanCell:
    """Cell as it ran. ``until`` is the running line: from there on no code has run."""

    id: str
    number: int
    source: str
    until: int | None = None


@dataclass(frozen=True)
class CodeSession:
    """Session that submits a function.

    Attributes:
        cells: The code that ran, in order; the last entry is running now.
        namespace: Its global names.
        folder: The folder in which its jobs run.
        path: The notebook or script, if known; for a notebook only its name.
        module_folder: The folder of a script's own modules, if that is not ``folder``.
        interpreter: Path of its Python, which runs the jobs.
    """

    cells: tuple[RanCell, ...]
    namespace: Mapping[str, object]
    folder: Path
    path: str | None = None
    module_folder: str | None = None
    interpreter: str = sys.executable


def current() -> CodeSession:
    """Return the current session.

    Raises:
        InvalidInput: Its code has no text: a plain Python prompt, or ``python -c``.
    """
    shell = sys.modules.get("IPython")
    ipython = shell.get_ipython() if shell is not None else None
    return _of_script() if ipython is None else _of_ipython(ipython)


def _of_ipython(ipython: Any) -> CodeSession:
    namespace = ipython.user_ns
    history = ipython.history_manager.input_hist_raw
    cells = [RanCell(f"in-{at}", at, text) for at, text in enumerate(history) if text.strip()]
    line = _line(namespace)
    if cells and line is not None:
        last = cells.pop()
        # IPython leaves out empty lines above the code, and runs the code below %%time separately.
        above = len(last.source) - len(last.source.lstrip())
        line += last.source.count("\n", 0, above) + last.source.lstrip().startswith("%%")
        cells.append(RanCell(last.id, last.number, last.source, line))
    name = os.environ.get("JPY_SESSION_NAME", "")
    path = Path(name).name if name.endswith(".ipynb") else None
    return CodeSession(tuple(cells), namespace, Path.cwd(), path)


def _of_script() -> CodeSession:
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if file is None or not Path(file).is_file():
        raise InvalidInput(
            "A function is sent with the code that defines it, which this Python does not keep. "
            "Send it from a notebook, IPython or a script.",
            field="fn",
        )
    script, here = Path(file).absolute(), Path.cwd()
    text = script.read_text("utf-8")
    line = _line(vars(main))
    inside = script.is_relative_to(here)
    folder = script.parent
    return CodeSession(
        (RanCell(script.name, 1, text, line),),
        vars(main),
        here,
        script.relative_to(here).as_posix() if inside else str(script),
        None if folder == here else str(folder.relative_to(here) if inside else folder),
    )


def _line(namespace: Mapping[str, object]) -> int | None:
    """Return the line of the outermost running code of a namespace."""
    frame: FrameType | None = sys._getframe()
    found = None
    while frame is not None:
        if frame.f_globals is namespace:
            found = frame.f_lineno
        frame = frame.f_back
    return found


def sender_names(
    namespace: Mapping[str, object], verbs: Collection[object]
) -> dict[str, list[str]]:
    """Return the names of a namespace that submit jobs, by the field of ``Senders``.

    Args:
        verbs: ``benchpool.submit`` and ``benchpool.map``.
    """
    names = dict(namespace)
    modules = {name for name, each in names.items() if getattr(each, "__name__", "") == "benchpool"}
    return {
        "modules": sorted(modules | {"benchpool"}),
        "verbs": [name for name, each in names.items() if any(each is verb for verb in verbs)],
        "functions": [name for name, each in names.items() if isinstance(each, RemoteFunction)],
    }
