"""Runs beside one another, and once more: what is asked for and answered."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class RunChange(Struct, frozen=True):
    """Something that is otherwise; a side that does not have it is null."""

    area: str
    name: str
    before: str | None
    after: str | None


class JobAgain(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``again``: a repeat of the same key answers the same job."""

    key: (
        Annotated[str, Meta(min_length=1, max_length=200, description="Makes a repeat harmless.")]
        | None
    ) = None


class RunChangesQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """With which other job it is compared."""

    than: (
        Annotated[
            str,
            Meta(
                description="The other job; by default the send before it of the same user, "
                "project and name, one of the same code and options first.",
                max_length=26,
            ),
        ]
        | None
    ) = None


class RunChanges(Struct, frozen=True):
    """What is otherwise in job ``after`` than it was in ``before``, null where there is no other.

    ``code`` are the lines of a difference; ``note`` is said where it has none. ``unrecorded`` are
    those of both whose environment is not known here.
    """

    before: str | None
    after: str
    changes: list[RunChange] = []
    code: list[str] = []
    note: str = ""
    unrecorded: list[str] = []
