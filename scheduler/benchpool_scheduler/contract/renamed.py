"""Answer fields that were renamed: the former name is sent too, until the next release."""

from __future__ import annotations

from msgspec import Meta, Struct
from msgspec.structs import force_setattr


def former(now: str) -> Meta:
    """Return the description of a field that the field ``now`` replaces."""
    return Meta(description=f"Use `{now}`.", extra_json_schema={"deprecated": True})


def agree(answer: Struct, now: str, before: str) -> None:
    """Give two names of a field the same value, also in an answer of an older service."""
    value = getattr(answer, now) or getattr(answer, before)
    force_setattr(answer, now, value)
    force_setattr(answer, before, value)
