"""Closing of a node by an administrator: draining, or a maintenance window.

Running jobs continue. A draining node takes no starts. Before a maintenance window a node takes
only jobs whose time limit ends before the window begins, as with Slurm's reservations. A job
without a time limit has no known end, so that it is not started there.

>>> drains, window = Closing(), Closing(begins_s=100.0, ends_s=200.0)
>>> [drains.closed(0.0), window.closed(99.0), window.closed(100.0), window.closed(200.0)]
[True, False, True, False]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Closing:
    """Period in which a node takes no starts, in seconds on the pool's clock.

    Attributes:
        begins_s: Begin, or None if it has always been closed.
        ends_s: End, or None until an administrator opens it.
    """

    begins_s: float | None = None
    ends_s: float | None = None

    def closed(self, now_s: float) -> bool:
        """Return whether the node takes no starts now."""
        return self.keeps_off(now_s, 0.0)

    def keeps_off(self, now_s: float, limit_s: float | None) -> bool:
        """Return whether a job may not be started on the node now.

        Args:
            limit_s: Time limit of the job in seconds, or None.

        >>> window = Closing(100.0, 200.0)
        >>> [window.keeps_off(0.0, limit) for limit in (100.0, 101.0, None)]
        [False, True, True]
        """
        if self.ends_s is not None and now_s >= self.ends_s:
            return False
        if self.begins_s is None or now_s >= self.begins_s:
            return True
        return limit_s is None or now_s + limit_s > self.begins_s

    def changes(self, limit_s: float | None) -> Iterator[float]:
        """Yield the instants at which ``keeps_off`` changes for a job with this time limit.

        >>> list(Closing(100.0, 200.0).changes(30.0)), list(Closing(100.0, 200.0).changes(None))
        ([70.001, 200.0], [200.0])
        """
        if self.begins_s is not None and limit_s is not None:
            yield self.begins_s - limit_s + SOON_S
        if self.ends_s is not None:
            yield self.ends_s


SOON_S = 0.001
"""Delay after the last instant at which a job may start before a window, in seconds."""


def keep_off(closings: Iterable[Closing], now_s: float, limit_s: float | None) -> bool:
    """Return whether any closing of a node bars a job."""
    return any(closing.keeps_off(now_s, limit_s) for closing in closings)
