"""How a bench is given back: told, carried out by the notebook server, else by the Hub.

A server that can take the GPUs from its kernels is told to; where it does not within its time, and
where it cannot, the note is left and the server is stopped. What is used again is left alone.

>>> GIVING[Giving.NONE][GivingNews.STOP], GIVING[Giving.NOTING][GivingNews.LATE]
(<Giving.NOTING: 'noting'>, <Giving.STOPPING: 'stopping'>)
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Giving(StrEnum):
    """How far it is."""

    NONE = "none"
    RELEASING = "releasing"
    NOTING = "noting"
    STOPPING = "stopping"


class GivingNews(StrEnum):
    """What happened."""

    RELEASE = "release"
    STOP = "stop"
    NOTED = "noted"
    LATE = "late"
    USED = "used"


def _row(*steps: Giving) -> Mapping[GivingNews, Giving]:
    return MappingProxyType(dict(zip(GivingNews, steps, strict=True)))


_NONE, _RELEASING = Giving.NONE, Giving.RELEASING
_NOTING, _STOPPING = Giving.NOTING, Giving.STOPPING

#                   release     stop       noted      late       used
GIVING: Mapping[Giving, Mapping[GivingNews, Giving]] = MappingProxyType(
    {
        _NONE: _row(_RELEASING, _NOTING, _NONE, _NONE, _NONE),
        _RELEASING: _row(_RELEASING, _RELEASING, _RELEASING, _STOPPING, _NONE),
        _NOTING: _row(_NOTING, _NOTING, _STOPPING, _STOPPING, _NONE),
        _STOPPING: _row(_STOPPING, _STOPPING, _STOPPING, _STOPPING, _STOPPING),
    }
)
"""What follows of what happened. A server that the Hub was told to stop comes back no more."""

TAKES_S: Mapping[Giving, float] = MappingProxyType({_RELEASING: 60.0, _NOTING: 25.0})
"""For so long each may last before it is late."""
