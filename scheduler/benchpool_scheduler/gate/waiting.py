"""Requests that arrive before their service answers: how long they are held, and the answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.gate.directory import Openness, ServiceDirectory, ServiceRoute
from benchpool_scheduler.gate.figures import RequestFigures
from benchpool_scheduler.service import Caller

MOST_HELD_S = 300
"""Maximum wait of a request with ``Prefer: wait=N`` (RFC 7240), in seconds."""

HEADINGS: Mapping[Openness, str] = {
    Openness.READY: "answers",
    Openness.STARTING: "is starting",
    Openness.ASLEEP: "is asleep",
    Openness.PAUSED: "is paused",
    Openness.FAILED: "has failed",
}

_WAIT = re.compile(r"wait\s*=\s*\"?([0-9]{1,6})\"?")


def wait_s(prefer: str) -> int:
    """Return the wait that a client prefers, in seconds.

    >>> wait_s("respond-async, wait=20"), wait_s("wait=99999"), wait_s("wait=-1"), wait_s("")
    (20, 300, 0, 0)
    """
    for part in re.split("[,;]", prefer.lower()):
        if (found := _WAIT.fullmatch(part.strip())) is not None:
            return min(int(found[1]), MOST_HELD_S)
    return 0


def answers(route: ServiceRoute) -> bool:
    """Return whether a request can be forwarded."""
    return route.state is Openness.READY and bool(route.backends)


def sentence(route: ServiceRoute) -> str:
    """Return why a service does not answer and what happens next."""
    if route.sentence:
        return route.sentence
    if route.state is Openness.READY:
        return "None of its replicas is ready now. It continues as soon as one is."
    return f"It {HEADINGS[route.state]}."


def not_yet(route: ServiceRoute) -> Unavailable:
    """Return the error for a program."""
    state = Openness.STARTING if route.state is Openness.READY else route.state
    return Unavailable(
        f"{route.name}: {sentence(route)}",
        code=f"service-{state}",
        numbers={"retry_after_s": max(1, route.retry_after_s)},
    )


def _asked(
    directory: ServiceDirectory, figures: RequestFigures, name: str, caller: Caller
) -> ServiceRoute:
    """Return the route for a request, which wakes the service. Errors: NotFound."""
    route = directory.route(name, caller)
    directory.asked(name)
    if not answers(route):
        figures.unserved(name)
    return route


async def held(
    directory: ServiceDirectory,
    figures: RequestFigures,
    name: str,
    caller: Caller,
    gone: asyncio.Event,
    longest_s: float,
) -> ServiceRoute:
    """Return the route as soon as requests can be forwarded, or after a timeout.

    Args:
        directory: Directory of the services.
        figures: Request figures, in which the wait is counted.
        name: Name of the service, which is woken.
        caller: The caller, whose access is checked again each time.
        gone: Set when the client no longer waits.
        longest_s: Timeout in seconds; 0 for no wait.

    Raises:
        NotFound: There is no such service for the caller.
    """
    route = _asked(directory, figures, name, caller)
    if answers(route) or longest_s <= 0:
        return route
    with figures.waiting(name):
        return await _changed(directory, name, caller, gone, longest_s, answers)


async def seen_changed(
    directory: ServiceDirectory,
    figures: RequestFigures,
    name: str,
    caller: Caller,
    gone: asyncio.Event,
    seen: str,
    longest_s: float,
) -> ServiceRoute:
    """Return the route when it differs from the state that a page has seen, or after a timeout.

    The page waits for the service, which is woken if it sleeps.

    Raises:
        NotFound: There is no such service for the caller.
    """
    _asked(directory, figures, name, caller)
    return await _changed(
        directory,
        name,
        caller,
        gone,
        longest_s,
        lambda route: answers(route) or fingerprint(route) != seen,
    )


async def _changed(
    directory: ServiceDirectory,
    name: str,
    caller: Caller,
    gone: asyncio.Event,
    longest_s: float,
    done: Callable[[ServiceRoute], bool],
) -> ServiceRoute:
    """Return the route when it is as awaited, after a timeout, or when the client has gone."""
    loop = asyncio.get_running_loop()
    last = loop.time() + longest_s
    while True:
        change = asyncio.ensure_future(directory.changed(name))
        try:
            route = directory.route(name, caller)
            left_s = last - loop.time()
            if done(route) or left_s <= 0 or gone.is_set():
                return route
            await _first(change, gone, left_s)
        finally:
            change.cancel()


def fingerprint(route: ServiceRoute) -> str:
    """Return the text by which a page identifies the state it has seen."""
    return f"{route.state} {sentence(route)}"


async def _first(change: asyncio.Future[Any], gone: asyncio.Event, longest_s: float) -> None:
    left: asyncio.Future[Any] = asyncio.ensure_future(gone.wait())
    try:
        await asyncio.wait({change, left}, timeout=longest_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        left.cancel()
