"""Effect of a reservation on the jobs of a pass: which jobs it holds back (R14)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from benchpool_scheduler.core.backfill.reservation import Reservation, large, reserve
from benchpool_scheduler.core.capacity.placement import fits
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.fairness.scheduling_queue import Cursor
from benchpool_scheduler.core.jobs.equivalence import EquivalenceClass, Signature
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import Worker


class Backfill:
    """The reservation of one pass, if there is one.

    It does nothing on a cluster state in which no job has a known end.

    Attributes:
        reservation: Capacity that is kept for a job. None before a job was blocked, or if no ends
            are known.
    """

    def __init__(self, state: ClusterState, now_s: float) -> None:
        self.state = state
        self.now_s = now_s
        self.reservation: Reservation | None = None
        self._looking = bool(state.endings)
        self._behind: list[EquivalenceClass] = []
        self._late: set[Signature] = set()
        self._fitting: dict[Signature, bool] = {}

    # ------------------------------------------------------------------ the pass

    @property
    def until_s(self) -> float | None:
        """Return the shadow time of the reservation, or None without a reservation."""
        return None if self.reservation is None else self.reservation.at_s

    def needs_turn(self, info: JobInfo) -> bool:
        """Return whether a hopeless job still needs its turn, since it may get the reservation."""
        return self._looking and large(info) and not info.long

    def barred_gpus(self) -> int:
        """Return the number of free GPUs that are hidden from the job whose turn it is."""
        return 0 if self.reservation is None else self.reservation.barred

    def face(self, cursor: Cursor) -> bool:
        """Open or bar the reserved GPUs for a job. Return whether an attempt can succeed."""
        reservation = self.reservation
        if reservation is None:
            return True
        if not reservation.holds_back(cursor.info, self.now_s):
            reservation.open()
            return True
        reservation.bar()
        return cursor.equal_jobs.signature not in self._late

    def started(self, info: JobInfo, workers: Collection[Worker]) -> None:
        """Record that a job got workers."""
        if self.reservation is not None:
            self.reservation.started(tuple(workers), info, self.now_s)

    def blocked(self, cursor: Cursor, gone: Collection[int]) -> None:
        """Reserve capacity for a job that failed to start, if it is large and lacks only free GPUs.

        Only the first such job is tried, so that a pass pays for at most one trial.
        """
        info = cursor.info
        if not self._looking or cursor.workers or not large(info) or info.long:
            return
        if self.state.ledger.bound(info, info.min_gang, releasing=False) is not None:
            return
        if not self.state.possible(info):
            return
        self._looking = False
        self.reservation = reserve(self.state, info, self.now_s, gone)

    def skip(self, cursor: Cursor) -> bool | None:
        """Skip the jobs of a class that end too late. Return whether a shorter job is left.

        Returns None if the class did not fail because of a reservation.
        """
        reservation = self.reservation
        if reservation is None or not reservation.holds_back(cursor.info, self.now_s):
            return None
        if cursor.info is reservation.info:
            return None
        equal_jobs, start = cursor.equal_jobs, cursor.position
        self._late.add(equal_jobs.signature)
        shorter = equal_jobs.no_longer_than(reservation.at_s - self.now_s, start)
        if shorter != start:
            self._behind.append(equal_jobs.part(start, shorter))
        return cursor.go_to(shorter)

    def forget(self) -> list[EquivalenceClass]:
        """Drop the reservation because capacity was freed. Return the classes that it held back."""
        held_back, self._behind = self._behind, []
        self.close()
        self.reservation = None
        self._late = set()
        self._looking = bool(self.state.endings)
        return held_back

    def close(self) -> None:
        """End the pass for the reservation: release the barred GPUs."""
        self._fitting = {}
        if self.reservation is not None:
            self.reservation.open()

    # ------------------------------------------------------------------ jobs held back

    def waiting(self) -> Iterator[Cursor]:
        """Yield the held-back jobs that would not fit without the reservation either."""
        for equal_jobs in self._behind:
            if not self._would_fit(equal_jobs):
                yield Cursor(equal_jobs)

    def only_held_back(self) -> Iterator[EquivalenceClass]:
        """Yield the classes of new jobs that only the reservation keeps from starting now."""
        for equal_jobs in self._behind:
            if not equal_jobs.workers and self._would_fit(equal_jobs):
                yield equal_jobs

    def _would_fit(self, equal_jobs: EquivalenceClass) -> bool:
        known = self._fitting.get(equal_jobs.signature)
        if known is None:
            known = self._fitting[equal_jobs.signature] = self._fits_now(equal_jobs)
        return known

    def _fits_now(self, equal_jobs: EquivalenceClass) -> bool:
        info, state = equal_jobs.at(0), self.state
        workers = 1 if equal_jobs.workers else info.least
        bound = state.ledger.bound(info, info.request.times(workers), releasing=False)
        return bound is None and fits(info, workers, state.capacity, releasing=False)
