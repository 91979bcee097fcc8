"""State of this server's bench: whether it is parked, and the pages that wait for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchpool.server.pool_access import PoolAccess
from benchpool_scheduler.contract import ParkedBench, ParkStep
from benchpool_scheduler.errors import BenchpoolError, Refused

LOOK_S, WAIT_S, OFF_S = 5.0, 0.5, 60.0
"""Poll intervals in seconds: normally, while a cell waits, and on a site that parks no benches."""

ANSWER_S = 10.0
"""Timeout for an answer about a bench that is not parked, in seconds; then the cell runs anyway.

A cell sent to a parked kernel waits there and shows nothing, so a slow answer is worth the wait.
After a timeout, later cells do not wait until the pool answers again.
"""

AWAY = (ParkStep.PARKING, ParkStep.PARKED, ParkStep.RETURNING)
log = logging.getLogger(__name__)


class WaitingPage(Protocol):
    """Interface of a connection that holds cells of one page until the bench is back."""

    @property
    def kernel_id(self) -> str:
        """ID of the page's kernel."""

    def show(self, text: str) -> None:
        """Show a sentence below the first held cell."""

    def let_go(self) -> None:
        """Send the held messages to the kernel."""

    def give_up(self) -> None:
        """End the held cells as interrupted."""


@dataclass(slots=True)
class ParkedWatch:
    """Tracks the state of this server's bench, and requests its return when a cell wants to run.

    Attributes:
        manager: The kernels of the server.
        user: Owner of the server.
        server: Name of the server.
        bench: Last known state; None if it is not parked.
        offered: The site parks benches.
        silent: The pool did not answer the last request.
    """

    pool: PoolAccess
    manager: Any
    user: str
    server: str
    bench: ParkedBench | None = None
    offered: bool = False
    silent: bool = False
    _pages: list[WaitingPage] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _shown: str = ""

    @property
    def is_away(self) -> bool:
        """Whether the kernel's GPU memory is not on its GPU, or soon will not be."""
        return self.bench is not None and self.bench.step in AWAY

    @property
    def must_wait(self) -> bool:
        """Whether a cell waits: if the site parks benches, until this one is known to be present.

        Cells that arrive together wait for one answer. If the pool does not answer, they run at
        once.
        """
        return self.is_away or (self.offered and not self.silent)

    def hold(self, page: WaitingPage) -> None:
        """Add a waiting page, and request the return of the bench."""
        if page not in self._pages:
            self._pages.append(page)
            self._shown = ""
        self._news.set()

    def let_go(self, page: WaitingPage) -> None:
        """Remove a waiting page."""
        self._pages = [it for it in self._pages if it is not page]

    async def run(self) -> None:
        """Poll the pool in an endless loop."""
        while True:
            self._news.clear()
            await self._look()
            try:
                async with asyncio.timeout(self._patience_s()):
                    await self._news.wait()
            except TimeoutError:
                continue

    def _patience_s(self) -> float:
        if self._pages:
            return WAIT_S
        return LOOK_S if self.offered or self.silent else OFF_S

    async def _look(self) -> None:
        waiting = list(self._pages)  # pages added during the request wait for the next answer
        try:
            self.bench = await self._ask()
            self.offered, self.silent = True, False
            if self.is_away and (self._pages or self._works()):
                await self._bring_back()
        except Refused:  # the site parks no benches
            self.bench, self.offered, self.silent = None, False, False
        except BenchpoolError as failed:
            self.silent = True
            log.info("state of the bench not known: %s", failed)
        if self.bench is not None and self.is_away:
            self._show(self.bench.text)
        else:
            for page in waiting:
                self.let_go(page)
                page.let_go()

    async def _ask(self) -> ParkedBench | None:
        benches = await self.pool.ask(lambda pool: pool.parked_benches(), ANSWER_S)
        mine = (it for it in benches if (it.user, it.server) == (self.user, self.server))
        return next(mine, None)

    async def _bring_back(self) -> None:
        bench = self.bench
        if bench is not None and bench.step is not ParkStep.RETURNING:
            lease = bench.lease
            self.bench = await self.pool.ask(lambda pool: pool.unpark_bench(lease), ANSWER_S)

    def _works(self) -> bool:
        """Return whether a kernel is busy: another client's cell waits in its first CUDA call."""
        return any(state == "busy" for state in self._states())

    def _states(self) -> Iterator[object]:
        for kernel in self.manager.list_kernel_ids():
            yield getattr(self.manager.get_kernel(kernel), "execution_state", None)

    def _show(self, text: str) -> None:
        if text != self._shown:
            self._shown = text
            for page in self._pages:
                page.show(text)

    def listen_to_acts(self) -> None:
        """Wrap the kernel actions of the manager, so that they end waiting cells."""
        for act in ("interrupt_kernel", "restart_kernel", "shutdown_kernel"):
            setattr(self.manager, act, self._through(getattr(self.manager, act)))

    def _through(self, act: Any) -> Any:
        def through(kernel_id: str, *words: Any, **named: Any) -> Any:
            for page in [it for it in self._pages if it.kernel_id == kernel_id]:
                self.let_go(page)
                page.give_up()
            return act(kernel_id, *words, **named)

        return through


def wanted(environ: Mapping[str, str]) -> bool:
    """Return whether a server may have a parked bench: with a Hub, on one machine.

    >>> wanted({"JUPYTERHUB_API_TOKEN": "t", "JUPYTERHUB_USER": "susan"})
    True
    >>> wanted({"JUPYTERHUB_API_TOKEN": "t", "KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    False
    """
    known = {"JUPYTERHUB_API_TOKEN", "JUPYTERHUB_USER"} <= environ.keys()
    return known and "KUBERNETES_SERVICE_HOST" not in environ
