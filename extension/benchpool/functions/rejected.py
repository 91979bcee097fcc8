"""The error for a function that cannot be sent, also in a Python without benchpool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchpool_scheduler.errors import InvalidInput as InvalidInput
else:
    try:
        from benchpool_scheduler.errors import InvalidInput
    except ImportError:  # a kernel with its own Python, see benchpool.foreign

        class InvalidInput(ValueError):
            """A field is missing, of the wrong type, or out of its range."""

            def __init__(
                self,
                message: str,
                *,
                field: str | None = None,
                numbers: Mapping[str, int | float | str] | None = None,
            ) -> None:
                super().__init__(message)
                self.message, self.field, self.numbers = message, field, dict(numbers or {})
