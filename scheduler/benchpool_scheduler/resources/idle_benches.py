"""The rule for idle benches as a part of ``PoolSettings``."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Seconds = Annotated[float, Meta(ge=1, le=30 * 86_400)]


class IdleExemptionSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Exemption of benches from the rule for idle benches until the end of a day."""

    who: Annotated[
        str,
        Meta(min_length=1, max_length=100, description="A user, group:NAME or profile:NAME."),
    ]
    until: Annotated[
        str,
        Meta(
            pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
            max_length=10,
            description="Last day, such as 2026-12-31.",
        ),
    ]
    why: Annotated[str, Meta(max_length=200, description="Reason, shown to users.")] = ""


class IdleRuleSpec(
    Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Rule for the release of idle benches."""

    act: Annotated[
        bool | None,
        Meta(
            description="Reclaim idle benches; false sends no notifications and reclaims nothing."
        ),
    ] = None
    tell_s: Annotated[
        Seconds | None, Meta(description="Idle time until the owner is notified, in seconds.")
    ] = None
    ask_s: Annotated[
        Seconds | None, Meta(description="Idle time until the owner is asked, in seconds.")
    ] = None
    act_s: Annotated[
        Seconds | None, Meta(description="Idle time until the bench is reclaimed, in seconds.")
    ] = None
    keep_s: Annotated[
        Seconds | None,
        Meta(description="Duration of one request of the owner to keep a bench, in seconds."),
    ] = None
    keeps_a_day: Annotated[
        Annotated[int, Meta(ge=0, le=100)] | None,
        Meta(description="Maximum number of requests to keep a bench in 24 hours."),
    ] = None
    exempt: Annotated[list[IdleExemptionSpec], Meta(max_length=1000)] = []
