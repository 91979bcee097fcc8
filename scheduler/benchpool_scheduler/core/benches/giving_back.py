"""Steps of releasing a bench, by the notebook server or by the Hub.

A server that can take the GPUs from its kernels is asked to release them. If its timeout expires,
the server is stopped. A server that cannot release GPUs is stopped after a note is left in the
user's folder. A bench that is used again keeps its GPUs until the Hub has accepted its stop.

>>> GIVING[Giving.NONE][GivingNews.STOP], GIVING[Giving.NOTING][GivingNews.LATE]
(<Giving.NOTING: 'noting'>, <Giving.STOP_DUE: 'stop-due'>)
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Giving(StrEnum):
    """Step of the release of a bench.

    ``stop-due``: the Hub is asked at the next opportunity. ``stopping``: the request is in
    progress or accepted. ``stop-refused``: the Hub refused or did not answer.
    """

    NONE = "none"
    RELEASING = "releasing"
    NOTING = "noting"
    STOP_DUE = "stop-due"
    STOPPING = "stopping"
    STOP_REFUSED = "stop-refused"


class GivingNews(StrEnum):
    """Event in the release of a bench.

    ``late``: the timeout of a step has expired. ``used``: the bench is used or kept again.
    ``requested``, ``refused``: the stop at the Hub.
    """

    RELEASE = "release"
    STOP = "stop"
    NOTED = "noted"
    LATE = "late"
    USED = "used"
    REQUESTED = "requested"
    REFUSED = "refused"


def _row(*steps: Giving) -> Mapping[GivingNews, Giving]:
    return MappingProxyType(dict(zip(GivingNews, steps, strict=True)))


_NONE, _RELEASE, _NOTE = Giving.NONE, Giving.RELEASING, Giving.NOTING
_DUE, _STOP, _REFUSED = Giving.STOP_DUE, Giving.STOPPING, Giving.STOP_REFUSED

#                   release   stop      noted     late      used    requested refused
GIVING: Mapping[Giving, Mapping[GivingNews, Giving]] = MappingProxyType(
    {
        _NONE: _row(_RELEASE, _NOTE, _NONE, _NONE, _NONE, _NONE, _NONE),
        _RELEASE: _row(_RELEASE, _RELEASE, _RELEASE, _DUE, _NONE, _RELEASE, _RELEASE),
        _NOTE: _row(_NOTE, _NOTE, _DUE, _DUE, _NONE, _NOTE, _NOTE),
        _DUE: _row(_DUE, _DUE, _DUE, _DUE, _NONE, _STOP, _DUE),
        _STOP: _row(_STOP, _STOP, _STOP, _DUE, _STOP, _STOP, _REFUSED),
        _REFUSED: _row(_REFUSED, _REFUSED, _REFUSED, _DUE, _NONE, _REFUSED, _REFUSED),
    }
)
"""Next step by present step and event.

Use ends each step except ``stopping``, in which it comes too late. A stop that was refused or had
no effect becomes due again, and the bench is checked for use before the next request.
"""

HUB_STOPS = frozenset({_DUE, _STOP, _REFUSED})
"""Steps in which only the stop by the Hub is left."""

STOPS = HUB_STOPS | {_NOTE}
"""Steps on the way to a stop of the server."""

TAKES_S: Mapping[Giving, float] = MappingProxyType(
    {_RELEASE: 60.0, _NOTE: 25.0, _STOP: 60.0, _REFUSED: 15.0}
)
"""Timeout of each step, in seconds."""
