"""Error answer of the API."""

from __future__ import annotations

from msgspec import Struct

SAFE_MODE = "safe-mode"
"""Code of requests that are rejected until an administrator has acted. Retries do not help."""
RATE_LIMITED = "too-many-requests"
"""Code of a request that the rate limit rejected, and that so had no effect."""


class ErrorBody(Struct, frozen=True):
    """Error: a sentence for users, a code for programs, the field concerned, and numbers."""

    code: str
    message: str
    field: str | None
    numbers: dict[str, int | float | str | None]


class ErrorAnswer(Struct, frozen=True):
    """Body of every answer that is not a success."""

    error: ErrorBody
