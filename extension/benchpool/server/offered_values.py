"""Offers of kernel values in the dialog, with a measurement of how fast values are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field

from benchpool import value_offers
from benchpool.drafts import Draft
from benchpool.kernel.answer import KernelAnswer, NotAsked
from benchpool.server import kernel_values
from benchpool.server.kernel_answers import KernelAnswers
from benchpool.server.requests import SendRequest
from benchpool.value_offers import ValueOffer, ValuePace
from benchpool_scheduler.contract import Quota
from benchpool_scheduler.errors import BenchpoolError

QUOTA_S = 0.5
"""Time to wait for the pool's limit for values, in seconds."""


MOST_KERNELS = 50
"""Number of kernels, the newest, whose sent values are remembered."""


@dataclass(slots=True)
class SentObjects:
    """Objects of a kernel by name, with identity and size; ``ran`` counts the code that had run."""

    ran: int = 0
    seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    sent: dict[str, tuple[int, int]] = field(default_factory=dict)

    def look(self, answer: KernelAnswer) -> set[str]:
        """Return the names whose present objects were sent before."""
        ran = answer.first + len(answer.history)
        if ran < self.ran:
            self.sent = {}  # it was restarted
        self.ran = ran
        self.seen = {name: (it.identity, it.bytes) for name, it in answer.names.items()}
        return {name for name, it in self.seen.items() if self.sent.get(name) == it}

    def went(self, names: Sequence[str]) -> None:
        """Record that these names were sent, with their objects as last seen."""
        self.sent |= {name: self.seen[name] for name in names if name in self.seen}


@dataclass(slots=True)
class OfferedValues:
    """Values that may be sent from the kernels of one notebook server."""

    kernels: KernelAnswers
    pace: ValuePace = field(default_factory=ValuePace)
    objects: dict[str, SentObjects] = field(default_factory=dict)

    async def of(
        self,
        request: SendRequest,
        answer: KernelAnswer | NotAsked | None,
        quota: Awaitable[Quota | BenchpoolError],
    ) -> list[ValueOffer]:
        """Return the values that may be sent with a request."""
        if not isinstance(answer, KernelAnswer) or request.cells is None:
            return []
        stored = self._objects(request.kernel_id).look(answer)
        cells, seconds = request.notebook_cells(), request.seconds()
        if sum(seconds.values()) < value_offers.LEAST_S:
            return []
        found = await asyncio.to_thread(
            value_offers.candidates, cells, answer, seconds, self.pace, await _most(quota), stored
        )
        if not found.groups:
            return []
        obstacles = await kernel_values.obstacles(
            self.kernels.manager, request.kernel_id, list(found.groups), pickle=request.pickle
        )
        return await asyncio.to_thread(found.offers, obstacles)

    def uploaded(self, kernel: str | None, draft: Draft, count: int, seconds: float) -> None:
        """Record the time in seconds to upload ``count`` contents of a draft."""
        self._objects(kernel).went(draft.values.names)
        if count == len(draft.contents):
            self.pace = self.pace.after(draft.values.bytes, seconds)

    def _objects(self, kernel: str | None) -> SentObjects:
        known = self.objects.pop(kernel or "", None) or SentObjects()
        self.objects[kernel or ""] = known
        for old in list(self.objects)[:-MOST_KERNELS]:
            del self.objects[old]
        return known


def names_of(request: SendRequest, offers: Sequence[ValueOffer]) -> tuple[str, ...]:
    """Return the names whose values are sent: the ticked ones, else the chosen offers."""
    if request.send is not None:
        return tuple(request.send)
    return tuple(name for one in offers if one.chosen for name in one.names)


async def _most(quota: Awaitable[Quota | BenchpoolError]) -> int:
    try:
        answer = await asyncio.wait_for(asyncio.shield(quota), QUOTA_S)
    except TimeoutError:
        return value_offers.MOST_BYTES
    return (
        value_offers.MOST_BYTES if isinstance(answer, BenchpoolError) else answer.values_gib << 30
    )
