"""API routes that show the pool: events, quota, status."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.api.stream import Frame, Outlet, Timing, encoded, hold, resume_from
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.service import FeedEvent

KEPT = 16
"""Cache size for encoded batches of events."""


async def events(request: Request, timing: Timing, encodings: Encodings) -> Answer:
    """Stream the events that the caller may see."""
    after = resume_from(request, request.query.after)
    outlet = Outlet(request.transport, encodings.of)
    with request.pool.events.to(outlet, request.caller, after):
        await hold(request, outlet, timing)
    return Answer()


async def quota(request: Request) -> Answer:
    """Return a user's build quota, projects and job file use."""
    answer = request.pool.views.quota(request.caller, request.query.user)
    return Answer(replace(answer, files=await request.pool.files.of(answer.user)))


async def estimates(request: Request) -> Answer:
    """Return the accuracy of start estimates."""
    return Answer(request.pool.estimates.accuracy())


async def people(request: Request) -> Answer:
    """Return the users of the pool."""
    return Answer(request.pool.people.all(request.caller))


async def status(request: Request) -> Answer:
    """Return the status of the pool in one object."""
    return Answer(request.pool.views.status(request.caller, gpus=request.query.gpus))


async def gpu_use(request: Request) -> Answer:
    """Return the measured use of GPUs."""
    return Answer(request.pool.gpu_use.gpus(request.caller, mine=request.query.mine))


class Encodings:
    """Cache of encoded batches of events, shared by all clients that get the same batch."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[Sequence[FeedEvent], bytes]] = OrderedDict()

    def of(self, piece: Sequence[FeedEvent]) -> bytes:
        """Return the bytes of a batch, encoded once per batch object."""
        known = self._known.get(id(piece))
        if known is None or known[0] is not piece:
            frames = (Frame(event.seq, event.kind, event.data) for event in piece)
            # The entry keeps the batch alive, so its ID is not reused.
            known = self._known[id(piece)] = piece, encoded(frames)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return known[1]


def handlers(timing: Timing) -> Mapping[Operation[Any], Handle]:
    """Return the handlers of these operations. ``timing`` is that of event streams."""
    return {
        Operations.events: partial(events, timing=timing, encodings=Encodings()),
        Operations.quota: quota,
        Operations.status: status,
        Operations.gpu_use: gpu_use,
        Operations.people: people,
        Operations.estimates: estimates,
    }
