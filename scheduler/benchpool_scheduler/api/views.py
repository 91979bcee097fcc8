"""The pool to look at: events, quota, status."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.api.stream import Frame, Timing, relay, resume_from
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.service import FeedEvent


async def events(request: Request, timing: Timing) -> Answer:
    """Stream what happens, as far as the caller may see it."""
    after = resume_from(request, request.query.after)
    await relay(request, _frames(request.pool.events.pieces(request.caller, after)), timing)
    return Answer()


async def quota(request: Request) -> Answer:
    """Answer build quota and projects of a user."""
    return Answer(request.pool.views.quota(request.caller, request.query.user))


async def status(request: Request) -> Answer:
    """Answer the pool in one object."""
    return Answer(request.pool.views.status(request.caller, gpus=request.query.gpus))


async def _frames(pieces: AsyncIterator[Sequence[FeedEvent]]) -> AsyncIterator[list[Frame]]:
    async for piece in pieces:
        yield [Frame(event.seq, event.kind, event.data) for event in piece]


def handlers(timing: Timing) -> Mapping[Operation[Any], Handle]:
    """Return who answers; ``timing`` is that of event streams."""
    return {
        Operations.events: partial(events, timing=timing),
        Operations.quota: quota,
        Operations.status: status,
    }
