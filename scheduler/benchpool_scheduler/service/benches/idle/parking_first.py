"""Parking as the mildest action: a due bench lends its GPU and loses nothing."""

from __future__ import annotations

from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.benches.idle.watcher import WatchedBench
from benchpool_scheduler.service.benches.parking import BenchParking

RULE = Caller("idle-benches", kind="service")


class ParkingFirst:
    """Tries once to park each due bench; a bench that cannot be parked is released instead.

    Args:
        parking: Parks benches, where the site enables it.
    """

    def __init__(self, parking: BenchParking) -> None:
        self._parking = parking
        self._tried: dict[str, WatchedBench] = {}

    @property
    def wanted(self) -> bool:
        """Whether this site parks benches."""
        return self._parking.wanted

    async def begin(self, bench: WatchedBench) -> bool:
        """Begin to park a bench that was not tried yet. Return whether parking has begun now."""
        if bench.lease.id in self._tried or not self.wanted:
            return False
        self._tried[bench.lease.id] = bench
        try:
            await self._parking.park(RULE, bench.lease.id)
        except BenchpoolError:
            return False  # the refusal is not shown: the bench is released instead
        return True

    def under_way(self, bench: WatchedBench) -> bool:
        """Return whether a bench is being parked."""
        return bench.lease.id in self._tried and self._parking.knows(bench.lease.id)

    def parked(self, due: set[str]) -> list[WatchedBench]:
        """Return the benches parked since the last call, and forget benches no longer due.

        Args:
            due: The IDs of the benches that are still due.
        """
        over = [self._tried.pop(id_) for id_ in self._tried.keys() - due]
        return [it for it in over if self._parking.is_lent(it.lease.id)]
