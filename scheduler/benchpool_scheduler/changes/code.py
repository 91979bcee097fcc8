"""The difference between the code of two jobs, line by line. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from benchpool_scheduler.contract import SentCode

MOST_LINES = 4000
"""Maximum number of lines for a comparison; more would take seconds."""

CONTEXT = 2
SAME_CODE = "The code is the same."

Kind = Literal["new", "gone", "place", "same"]


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of the difference: only in the second, only in the first, a position, or in both."""

    kind: Kind
    text: str


def code_difference(
    first: SentCode | None, second: SentCode | None
) -> tuple[tuple[CodeLine, ...], str]:
    """Return the different lines with their context, and a sentence if there are none.

    None stands for code whose content no longer exists.
    """
    if first is None or second is None:
        return (), "The code of one of the runs is no longer kept."
    before, after = _lines(first), _lines(second)
    if not before and not after and (first.command or second.command):
        return (), (
            "The code of a command or module is not compared line by line. Files that were sent "
            "with it are named if they differ."
        )
    if not before and not after:
        return (), "No code was sent with them: they ran the files in their folder."
    if max(len(before), len(after)) > MOST_LINES:
        return (), f"The code has more than {MOST_LINES} lines: too long to compare here."
    lines = difflib.unified_diff(before, after, n=CONTEXT, lineterm="")
    found = tuple(_line(line) for line in list(lines)[2:])
    cut = first.cut or second.cut
    return found, "" if found else ("The first MiB is the same." if cut else SAME_CODE)


def _lines(code: SentCode) -> list[str]:
    if code.text is not None:
        return code.text.splitlines()
    return [line for cell in code.cells for line in ("# %%", *cell.source.splitlines())]


def _line(line: str) -> CodeLine:
    kinds: Mapping[str, Kind] = {"+": "new", "-": "gone", "@": "place"}
    return CodeLine(kinds.get(line[:1], "same"), line)
