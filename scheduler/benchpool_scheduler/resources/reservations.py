"""Reservations of GPUs as a part of ``PoolSettings``."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Time = Annotated[str, Meta(min_length=10, max_length=40)]


class ReservationSpec(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"from_": "from"},
):
    """GPUs that are reserved for a project for a time."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    project: Annotated[str, Meta(min_length=1, max_length=100)]
    gpus: Annotated[int, Meta(ge=1, le=100_000)]
    from_: Annotated[Time, Meta(description="Start, such as 2026-11-28 14:00.")]
    until: Annotated[Time, Meta(description="End.")]
