"""How the bench below this server stands: whether it is parked, and what waits for it."""

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
"""The pool is asked so often, more often while a cell waits, and seldom where nothing is parked by
the site's own will."""

ANSWER_S = 10.0
"""A cell runs unasked where no answer comes within this time, and the bench was not parked: a cell
that goes to a parked kernel waits there and shows nothing, so a slow answer is worth waiting for.
Cells after it wait for no answer until there was one again."""

AWAY = (ParkStep.PARKING, ParkStep.PARKED, ParkStep.RETURNING)
log = logging.getLogger(__name__)


class WaitingPage(Protocol):
    """What keeps cells of one page until the bench is back."""

    @property
    def kernel_id(self) -> str:
        """The kernel of the page."""

    def say(self, text: str) -> None:
        """Show a sentence below the first cell that waits."""

    def let_go(self) -> None:
        """Send what waits to the kernel."""

    def give_up(self) -> None:
        """End what waits as interrupted."""


@dataclass(slots=True)
class ParkedWatch:
    """Asks how this server's bench stands, and brings it back when a cell wants to run.

    Attributes:
        manager: The kernels of the server. ``user``, ``server``: whose it is, and its name.
        bench: As it was told last; None where it is not parked. ``offered``: the site parks.
        silent: The pool did not answer when it was asked last.
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
    _said: str = ""

    @property
    def is_away(self) -> bool:
        """Whether the kernel's GPU memory is not on its GPU, or soon will not be."""
        return self.bench is not None and self.bench.step in AWAY

    @property
    def must_wait(self) -> bool:
        """Whether a cell waits: where benches are parked, until it is known that this one is not.

        Cells that come together wait for one answer. Where the pool is silent they go on at once.
        """
        return self.is_away or (self.offered and not self.silent)

    def hold(self, page: WaitingPage) -> None:
        """Let somebody wait, and bring the bench back."""
        if page not in self._pages:
            self._pages.append(page)
            self._said = ""
        self._news.set()

    def let_go(self, page: WaitingPage) -> None:
        """Wait for somebody no more."""
        self._pages = [it for it in self._pages if it is not page]

    async def run(self) -> None:
        """Look on, for ever."""
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
        waiting = list(self._pages)  # who comes while it is asked waits for the next answer
        try:
            self.bench = await self._ask()
            self.offered, self.silent = True, False
            if self.is_away and (self._pages or self._works()):
                await self._bring_back()
        except Refused:  # the site parks no benches
            self.bench, self.offered, self.silent = None, False, False
        except BenchpoolError as failed:
            self.silent = True
            log.info("How the bench stands is not known: %s", failed)
        if self.bench is not None and self.is_away:
            self._tell(self.bench.text)
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
        """Whether a kernel works: a cell that came by another way waits in its first CUDA call."""
        return any(state == "busy" for state in self._states())

    def _states(self) -> Iterator[object]:
        for kernel in self.manager.list_kernel_ids():
            yield getattr(self.manager.get_kernel(kernel), "execution_state", None)

    def _tell(self, text: str) -> None:
        if text != self._said:
            self._said = text
            for page in self._pages:
                page.say(text)

    def listen_to_acts(self) -> None:
        """Take the acts on kernels through here: cells that wait end with them."""
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
    """Tell whether a server may have a bench that is parked: below a Hub, on one machine.

    >>> wanted({"JUPYTERHUB_API_TOKEN": "t", "JUPYTERHUB_USER": "susan"})
    True
    >>> wanted({"JUPYTERHUB_API_TOKEN": "t", "KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    False
    """
    known = {"JUPYTERHUB_API_TOKEN", "JUPYTERHUB_USER"} <= environ.keys()
    return known and "KUBERNETES_SERVICE_HOST" not in environ
