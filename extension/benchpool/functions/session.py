"""What this process ran so far, as far as a function may need it: cells of IPython, or a script."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from benchpool.functions.pieces import RanCell
from benchpool_scheduler.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class CodeSession:
    """Where a function is sent from.

    Attributes:
        cells: What ran, in order; the last one runs now.
        namespace: Its global names.
        folder: Where its jobs run.
        path: The notebook or script, where it is known; a notebook by its name alone.
        module_folder: Where a script's own modules lie, if that is not ``folder``.
    """

    cells: tuple[RanCell, ...]
    namespace: Mapping[str, object]
    folder: Path
    path: str | None = None
    module_folder: str | None = None


def current() -> CodeSession:
    """Return the session that runs this.

    Raises:
        InvalidInput: It has no text: a prompt of plain Python, or ``python -c``.
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
        # IPython leaves out empty lines above the code, and runs what stands below %%time alone.
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
            "A function is sent with the code that makes it, and this Python keeps none: send it "
            "from a notebook, IPython or a script.",
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
    """Return the line of the outermost code of a namespace that runs now."""
    frame: FrameType | None = sys._getframe()
    found = None
    while frame is not None:
        if frame.f_globals is namespace:
            found = frame.f_lineno
        frame = frame.f_back
    return found
