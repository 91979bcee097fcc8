"""Parking as the mildest act: a due bench lends its GPU and loses nothing, where that can be."""

from __future__ import annotations

from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.benches.idle.watcher import WatchedBench
from benchpool_scheduler.service.benches.parking import BenchParking

RULE = Caller("idle-benches", kind="service")


class ParkingFirst:
    """Tries each due bench once; what cannot be parked is given back.

    Args:
        parking: Parks benches, where the site wants that.
    """

    def __init__(self, parking: BenchParking) -> None:
        self._parking = parking
        self._tried: dict[str, WatchedBench] = {}

    @property
    def wanted(self) -> bool:
        """Whether this site parks benches at all."""
        return self._parking.wanted

    async def begin(self, bench: WatchedBench) -> bool:
        """Begin to park a bench that was not tried yet; tell whether that has begun now."""
        if bench.lease.id in self._tried or not self.wanted:
            return False
        self._tried[bench.lease.id] = bench
        try:
            await self._parking.park(RULE, bench.lease.id)
        except BenchpoolError:
            return False  # it says nothing new to anybody: the bench is given back instead
        return True

    def under_way(self, bench: WatchedBench) -> bool:
        """Tell whether a bench is being parked."""
        return bench.lease.id in self._tried and self._parking.knows(bench.lease.id)

    def parked(self, due: set[str]) -> list[WatchedBench]:
        """Return those that were parked since the last call, and forget who is not due any more.

        Args:
            due: The ids of the benches that are due still.
        """
        over = [self._tried.pop(id_) for id_ in self._tried.keys() - due]
        return [it for it in over if self._parking.is_lent(it.lease.id)]
