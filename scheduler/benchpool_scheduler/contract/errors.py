"""The answer that says what is wrong."""

from __future__ import annotations

from msgspec import Struct

SAFE_MODE = "safe-mode"
"""The code of what is refused until an administrator has acted: asking again does not help."""


class ErrorBody(Struct, frozen=True):
    """One sentence for people, a code for programs, the field it is about, its numbers."""

    code: str
    message: str
    field: str | None
    numbers: dict[str, int | float | str | None]


class ErrorAnswer(Struct, frozen=True):
    """Every answer that is not a good one."""

    error: ErrorBody
