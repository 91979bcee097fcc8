"""The one way to wait in tests: until a condition holds, however slow the machine is."""

from __future__ import annotations

import asyncio
import inspect
import linecache
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar, overload

import psutil

T = TypeVar("T")

PATIENCE_S = 120.0
"""Default patience of a wait, in seconds."""

POLL_S = 0.01
MOST_POLL_S = 0.1
"""Longest interval between two looks, in seconds."""

IN_ALL = 10
"""Limit of a wait while something moves, in multiples of its patience."""

MOST_SEEN = 4000
"""Limit of the last look's text in an error, in characters."""


class Overdue(AssertionError):
    """The awaited condition did not hold in time."""


def until(
    look: Callable[[], T],
    what: str | Callable[[], object] = "",
    seconds: float = PATIENCE_S,
    *,
    holds: Callable[[T], object] = bool,
    progress: Callable[[], object] | None = None,
) -> T:
    """Look again until a condition holds for the result, and return the result.

    Args:
        what: The awaited event, or a callable that returns it; by default the source line of
            ``look``.
        seconds: Limit of the wait. With ``progress``: of the time without progress.
        holds: Condition; by default the result has to be truthy.
        progress: Function whose result changes while there is progress.

    Raises:
        Overdue: The condition did not hold in time. The message shows the last result.
    """
    began = moved = time.monotonic()
    before, pause = progress and progress(), POLL_S
    while not holds(found := look()):
        time.sleep(pause)
        pause = min(MOST_POLL_S, pause * 1.5)
        now = time.monotonic()
        if progress and (after := progress()) != before:
            before, moved = after, now
        if now >= moved + seconds:
            raise _overdue(
                "nothing moved for" if progress else "not within", seconds, what, found, look
            )
        if now >= began + IN_ALL * seconds:
            raise _overdue("not within", IN_ALL * seconds, what, found, look)
    return found


@overload
async def until_async(
    look: Callable[[], Awaitable[T]],
    what: str | Callable[[], object] = "",
    seconds: float = PATIENCE_S,
    *,
    holds: Callable[[T], object] = bool,
) -> T: ...


@overload
async def until_async(
    look: Callable[[], T],
    what: str | Callable[[], object] = "",
    seconds: float = PATIENCE_S,
    *,
    holds: Callable[[T], object] = bool,
) -> T: ...


async def until_async(
    look: Callable[[], Any],
    what: str | Callable[[], object] = "",
    seconds: float = PATIENCE_S,
    *,
    holds: Callable[[Any], object] = bool,
) -> Any:
    """Wait like ``until`` without blocking the event loop; ``look`` may be asynchronous."""
    found: Any = None
    pause = 0.0
    try:
        async with asyncio.timeout(seconds) as limit:
            while True:
                found = look()
                if inspect.isawaitable(found):
                    found = await found
                if holds(found):
                    return found
                await asyncio.sleep(pause)
                pause = min(MOST_POLL_S, pause * 1.5 or POLL_S)
    except TimeoutError:
        if not limit.expired():
            raise
        raise _overdue("not within", seconds, what, found, look) from None


def stays(holds: Callable[[], object], seconds: float) -> None:
    """Check that a condition holds all the time, if no later event can prove it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert holds(), f"it ended within {seconds:g} s: {_name(holds)}"
        time.sleep(POLL_S)


def _overdue(
    how: str,
    seconds: float,
    what: str | Callable[[], object],
    seen: object,
    look: Callable[[], object],
) -> Overdue:
    awaited = (what() if callable(what) else what) or _name(look)
    return Overdue(f"{how} {seconds:g} s: {awaited}\nlast seen: {repr(seen)[-MOST_SEEN:]}")


def _name(look: Callable[[], object]) -> str:
    """Return the source line of a function, with its place."""
    code = getattr(look, "__code__", None)
    if code is None:
        return repr(look)
    line = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return f"{code.co_filename}:{code.co_firstlineno}: {line}"


def processor_seconds(processes: Iterable[psutil.Process]) -> dict[int, float]:
    """Return the used processor time by process, in seconds."""
    spent: dict[int, float] = {}
    for one in processes:
        with suppress(psutil.Error):
            spent[one.pid] = sum(one.cpu_times()[:2])
    return spent


def family(pid: int) -> list[psutil.Process]:
    """Return a process with all its descendants, or nothing if it has ended."""
    with suppress(psutil.Error):
        one = psutil.Process(pid)
        return [one, *one.children(recursive=True)]
    return []
