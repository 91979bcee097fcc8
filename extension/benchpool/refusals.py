"""Refusals of the pool in a plain script: shown in one line, without benchpool's own frames.

In a notebook the errors format themselves (``BenchpoolError``).
"""

from __future__ import annotations

import sys
import traceback
from itertools import takewhile
from pathlib import Path
from types import TracebackType

import benchpool_scheduler
from benchpool_scheduler.errors import BenchpoolError

OURS = (Path(__file__).parent, Path(benchpool_scheduler.__file__).parent)


def print_in_one_line() -> None:
    """Let this process print an uncaught refusal in one line; other errors stay unchanged."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, tb: TracebackType | None) -> None:
        if isinstance(error, BenchpoolError):
            print(f"benchpool: {one_line(error, tb)}", file=sys.stderr)
        else:
            before(kind, error, tb)

    sys.excepthook = hook


def one_line(error: BenchpoolError, tb: TracebackType | None) -> str:
    """Return a refusal with the line of the user's code that made the call.

    >>> from benchpool_scheduler.errors import Refused
    >>> one_line(Refused("64 GPUs are asked for, 8 are there."), None)
    'Refused: 64 GPUs are asked for, 8 are there.'
    """
    own = list(takewhile(_is_theirs, traceback.extract_tb(tb)))
    where = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error.message}{where}"


def _is_theirs(frame: traceback.FrameSummary) -> bool:
    return not any(Path(frame.filename).is_relative_to(folder) for folder in OURS)
