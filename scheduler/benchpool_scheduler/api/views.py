"""The pool to look at: events, quota, status."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.api.routing import Answer, Request
from benchpool_scheduler.api.stream import Frame, Timing, relay, resume_from
from benchpool_scheduler.contract import Name
from benchpool_scheduler.service import FeedEvent


class EventsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """From where: after this sequence number, or from now."""

    after: Annotated[int, Meta(ge=0, lt=2**60)] | None = None


class UserQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose: the caller's own unless said otherwise."""

    user: Name | None = None


class StatusQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """With every GPU, or without: in a large pool the list is longer than all the rest."""

    gpus: bool = True


async def events(request: Request, timing: Timing) -> Answer:
    """Stream what happens, as far as the caller may see it."""
    after = resume_from(request, request.query.after)
    await relay(request, _frames(request.pool.events(request.caller, after)), timing)
    return Answer()


async def quota(request: Request) -> Answer:
    """Answer build quota and projects of a user."""
    return Answer(request.pool.quota(request.caller, request.query.user))


async def status(request: Request) -> Answer:
    """Answer the pool in one object."""
    return Answer(request.pool.status(request.caller, gpus=request.query.gpus))


async def _frames(events: AsyncIterator[FeedEvent]) -> AsyncIterator[Frame]:
    async for event in events:
        yield Frame(event.seq, event.kind, event.data)
