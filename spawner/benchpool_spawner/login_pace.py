"""How fast passwords may be tried: after a few failures each next try waits, longer every time."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

FORGOTTEN_AFTER_S = 900.0
"""Failures this old count no longer."""

MOST_KEPT = 10_000
"""At most this many addresses and names are kept in mind; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Failures that cost nothing, and the longest wait after that; the first one is 1 s."""

    free: int
    longest_s: float


OF_ADDRESS = Limit(5, 60.0)
OF_NAME = Limit(10, 5.0)
"""Short, and late: whoever types another's name wrong on purpose must not lock them out."""


@dataclass(frozen=True, slots=True)
class Failures:
    """How often something failed, and when for the last time, in seconds."""

    count: int
    at: float

    def wait_s(self, limit: Limit, now: float) -> float:
        """Return the seconds until the next try.

        >>> [Failures(n, 0.0).wait_s(OF_ADDRESS, 0.0) for n in (4, 5, 6, 8, 20)]
        [0.0, 1.0, 2.0, 8.0, 60.0]
        >>> Failures(8, 0.0).wait_s(OF_ADDRESS, 5.0)
        3.0
        """
        if self.count < limit.free:
            return 0.0
        pause = min(limit.longest_s, 2.0 ** min(self.count - limit.free, 30))
        return max(0.0, self.at + pause - now)


class LoginPace:
    """Counts failed logins by address and by name.

    >>> pace = LoginPace()
    >>> for second in range(5): pace.failed("192.0.2.1", "joe", float(second))
    >>> pace.wait_s("192.0.2.1", "susan", 4.0), pace.wait_s("192.0.2.2", "joe", 4.0)
    (1, 0)
    >>> pace.succeeded("192.0.2.1", "joe"); pace.wait_s("192.0.2.1", "joe", 4.0)
    0
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Limit, str], Failures] = OrderedDict()

    def wait_s(self, address: str, name: str, now: float) -> int:
        """Return for how many whole seconds no password is looked at; 0 for none."""
        waits = (self._of(key, now).wait_s(key[0], now) for key in _keys(address, name))
        return math.ceil(max(waits))

    def failed(self, address: str, name: str, now: float) -> None:
        """Note a failure."""
        for key in _keys(address, name):
            self._kept[key] = Failures(self._of(key, now).count + 1, now)
            self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    def succeeded(self, address: str, name: str) -> None:
        """Forget what failed before."""
        for key in _keys(address, name):
            self._kept.pop(key, None)

    def _of(self, key: tuple[Limit, str], now: float) -> Failures:
        known = self._kept.get(key)
        return known if known and now - known.at < FORGOTTEN_AFTER_S else Failures(0, now)


def _keys(address: str, name: str) -> tuple[tuple[Limit, str], tuple[Limit, str]]:
    return (OF_ADDRESS, address), (OF_NAME, name[:255])
