"""Rate limit for passwords: after a few failures each further try waits longer."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

FORGOTTEN_AFTER_S = 900.0
"""Age after which failures no longer count, in seconds."""

MOST_KEPT = 10_000
"""Maximum number of stored addresses and names. The oldest are dropped first."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Number of failures without a wait, and the longest wait after that. The first wait is 1 s."""

    free: int
    longest_s: float


OF_ADDRESS = Limit(5, 60.0)
OF_NAME = Limit(10, 5.0)
"""Late and short waits: wrong passwords for another user's name must not lock that user out."""


@dataclass(frozen=True, slots=True)
class Failures:
    """Number of failures, and the time of the last one, in seconds."""

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
    """Counts of failed logins by address and by name.

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
        """Return the whole seconds for which no password is checked, or 0."""
        waits = (self._of(key, now).wait_s(key[0], now) for key in _keys(address, name))
        return math.ceil(max(waits))

    def failed(self, address: str, name: str, now: float) -> None:
        """Record a failure."""
        for key in _keys(address, name):
            self._kept[key] = Failures(self._of(key, now).count + 1, now)
            self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    def succeeded(self, address: str, name: str) -> None:
        """Clear the failures of this address and name."""
        for key in _keys(address, name):
            self._kept.pop(key, None)

    def _of(self, key: tuple[Limit, str], now: float) -> Failures:
        known = self._kept.get(key)
        return known if known and now - known.at < FORGOTTEN_AFTER_S else Failures(0, now)


def _keys(address: str, name: str) -> tuple[tuple[Limit, str], tuple[Limit, str]]:
    return (OF_ADDRESS, address), (OF_NAME, name[:255])
