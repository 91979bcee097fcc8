"""Event loop whose time jumps to the next timer instead of waiting for it.

Work takes no time on this clock. While a thread works (a commit, a pass), the loop waits for it and
its time stands still. So a run in virtual time does the same work as in real time, in the same
order of events, without the waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
from collections.abc import Callable, Iterator
from typing import Any, TypeVarTuple

from benchpool_scheduler.store.records import Change, StoredContents
from benchpool_scheduler.store.sqlite import SqliteStore

Arguments = TypeVarTuple("Arguments")

EPOCH_S = 1_700_000_000.0
"""Start time of the virtual clock, in seconds since the epoch."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._at_work = 0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._now_s

    def jump(self, seconds: float) -> None:
        """Advance the virtual time by ``seconds``."""
        self._now_s += seconds

    @property
    def busy(self) -> bool:
        """Return whether a thread works whose result is the next event."""
        return self._at_work > 0

    @contextlib.contextmanager
    def waiting_for_a_thread(self) -> Iterator[None]:
        """Stop the virtual time inside this context."""
        self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run a function in a thread; time stands still until it has returned."""
        future = super().run_in_executor(executor, func, *args)
        self._at_work += 1
        future.add_done_callback(self._answered)
        return future

    def _answered(self, future: asyncio.Future[Any]) -> None:
        self._at_work -= 1


class _JumpingSelector(selectors.DefaultSelector):
    """Selector that waits for files only while no other event can happen."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        if self._loop.busy or timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self._loop.jump(timeout)
        return ready


class VirtualClock:
    """The virtual time as the service's clock."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        """Return seconds since the epoch."""
        return EPOCH_S + self._loop.time()

    def of_wall(self, at: float) -> float:
        """Return the same time, since all times here are from this clock."""
        return at


class WatchedStore(SqliteStore):
    """The durable store; time stands still while its thread writes."""

    async def open(self) -> StoredContents:
        """Open the store; see ``SqliteStore``."""
        with _stillness():
            return await super().open()

    async def commit(
        self, *changes: Change, as_written: Callable[[str], None] | None = None
    ) -> None:
        """Commit changes; see ``SqliteStore``."""
        with _stillness():
            await super().commit(*changes, as_written=as_written)


def _stillness() -> contextlib.AbstractContextManager[None]:
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualTimeLoop):
        return loop.waiting_for_a_thread()
    return contextlib.nullcontext()
