"""Steps of releasing a bench, by the notebook server or by the Hub.

A server that can take the GPUs from its kernels is asked to release them. If its timeout expires,
the server is stopped. A server that cannot release GPUs is stopped after a note is left in the
user's folder. A bench that is used again keeps its GPUs.

>>> GIVING[Giving.NONE][GivingNews.STOP], GIVING[Giving.NOTING][GivingNews.LATE]
(<Giving.NOTING: 'noting'>, <Giving.STOPPING: 'stopping'>)
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Giving(StrEnum):
    """Step of the release of a bench."""

    NONE = "none"
    RELEASING = "releasing"
    NOTING = "noting"
    STOPPING = "stopping"


class GivingNews(StrEnum):
    """Event in the release of a bench."""

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
"""Next step by present step and event. A server that the Hub was asked to stop stays in that
step.
"""

TAKES_S: Mapping[Giving, float] = MappingProxyType({_RELEASING: 60.0, _NOTING: 25.0})
"""Timeout of each step, in seconds."""
