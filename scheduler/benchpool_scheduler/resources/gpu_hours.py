"""Budgets of GPU-hours as parts of ``Project`` and ``PoolSettings``."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Hours = Annotated[float, Meta(ge=0, le=1e9)]


class HourBudgetSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """GPU-hours in a calendar month. A missing value is no limit."""

    soft: Annotated[
        Hours | None, Meta(description="Budget beyond which the weight falls (R7).")
    ] = None
    hard: Annotated[Hours | None, Meta(description="Budget beyond which no job starts.")] = None


class UserHoursSpec(
    Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """GPU-hours of users in a calendar month. A missing value is no limit."""

    time_zone: (
        Annotated[
            str, Meta(min_length=1, max_length=64, description="Time zone of days and months.")
        ]
        | None
    ) = None
    soft: Annotated[
        Hours | None, Meta(description="Default for users without their own entry.")
    ] = None
    hard: Annotated[
        Hours | None, Meta(description="Default for users without their own entry.")
    ] = None
    users: Annotated[dict[str, HourBudgetSpec], Meta(max_length=10_000)] = {}
