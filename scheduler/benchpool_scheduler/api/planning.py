"""Planning through the API: what if, and the recorded history to replay."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.api.routing import Answer, Request


class HistoryQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """How far back."""

    days: Annotated[float, Meta(gt=0, le=3660)] = 30


async def whatif(request: Request) -> Answer:
    """Answer what would be otherwise with another configuration or more GPUs."""
    return Answer(await request.pool.whatif(request.caller, request.body))


async def history(request: Request) -> Answer:
    """Answer what ran and ended, as a trace."""
    text = await request.pool.history(request.caller, request.query.days)
    return Answer(text.encode(), headers={"Content-Type": "text/csv; charset=utf-8"})
