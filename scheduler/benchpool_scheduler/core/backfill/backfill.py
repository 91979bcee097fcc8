"""The turns behind a reservation: who is held back by it, and who is not (R14)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from benchpool_scheduler.core.backfill.reservation import Reservation, large, reserve
from benchpool_scheduler.core.capacity.placement import fits
from benchpool_scheduler.core.cluster.cluster_state import Board
from benchpool_scheduler.core.fairness.scheduling_queue import Waiter
from benchpool_scheduler.core.jobs.equivalence import Line, Shape
from benchpool_scheduler.core.jobs.job_info import Work
from benchpool_scheduler.core.model import Worker


class Backfill:
    """The reservation of one pass, if there is one.

    On a board without a known end this does nothing at all.

    Attributes:
        reservation: The room that is kept, None before anybody was blocked or where nothing is
            known of ends.
    """

    def __init__(self, board: Board, now_s: float) -> None:
        self.board = board
        self.now_s = now_s
        self.reservation: Reservation | None = None
        self._looking = bool(board.endings)
        self._behind: list[Line] = []
        self._late: set[Shape] = set()
        self._fitting: dict[Shape, bool] = {}

    # ------------------------------------------------------------------ turns

    @property
    def until_s(self) -> float | None:
        """Return the shadow time of the reservation, None without one."""
        return None if self.reservation is None else self.reservation.at_s

    def needs_turn(self, work: Work) -> bool:
        """Tell of a job without hope whether it must have its turn: room may be kept for it."""
        return self._looking and large(work) and not work.long

    def barred_gpus(self) -> int:
        """Return how many free GPUs are hidden from the present turn."""
        return 0 if self.reservation is None else self.reservation.barred

    def face(self, waiter: Waiter) -> bool:
        """Show a job the room that it may use in its turn; tell whether it is worth a turn."""
        reservation = self.reservation
        if reservation is None:
            return True
        if not reservation.holds_back(waiter.work, self.now_s):
            reservation.open()
            return True
        reservation.bar()
        return waiter.line.shape not in self._late

    def started(self, work: Work, workers: Collection[Worker]) -> None:
        """A job got workers."""
        if self.reservation is not None:
            self.reservation.started(tuple(workers), work, self.now_s)

    def blocked(self, waiter: Waiter, gone: Collection[int]) -> None:
        """A job had its turn in vain: the first large one that only lacks room has a reservation.

        It is the only one that is tried, so that a pass pays for one trial at most.
        """
        work = waiter.work
        if not self._looking or waiter.workers or not large(work) or work.long:
            return
        if self.board.ledger.bound(work, work.core, soon=False) is not None:
            return
        if not self.board.possible(work):
            return
        self._looking = False
        self.reservation = reserve(self.board, work, self.now_s, gone)

    def skip(self, waiter: Waiter) -> bool | None:
        """Pass over the jobs of a line that end too late; tell whether a shorter one is left.

        None when the line did not fail because of a reservation.
        """
        reservation = self.reservation
        if reservation is None or not reservation.holds_back(waiter.work, self.now_s):
            return None
        if waiter.work is reservation.work:
            return None
        line, start = waiter.line, waiter.position
        self._late.add(line.shape)
        shorter = line.no_longer_than(reservation.at_s - self.now_s, start)
        if shorter != start:
            self._behind.append(line.part(start, shorter))
        return waiter.go_to(shorter)

    def forget(self) -> list[Line]:
        """Room was given up: there is no reservation any more; return who was held back."""
        held_back, self._behind = self._behind, []
        self.close()
        self.reservation = None
        self._late = set()
        self._looking = bool(self.board.endings)
        return held_back

    def close(self) -> None:
        """Nobody has a turn left: the room is as it is."""
        self._fitting = {}
        if self.reservation is not None:
            self.reservation.open()

    # ------------------------------------------------------------------ who is held back

    def waiting(self) -> Iterator[Waiter]:
        """Yield those held back who would not fit without the reservation either."""
        for line in self._behind:
            if not self._would_fit(line):
                yield Waiter(line)

    def only_held_back(self) -> Iterator[Line]:
        """Yield the lines of new jobs that would start now, were it not for the reservation."""
        for line in self._behind:
            if not line.workers and self._would_fit(line):
                yield line

    def _would_fit(self, line: Line) -> bool:
        known = self._fitting.get(line.shape)
        if known is None:
            known = self._fitting[line.shape] = self._fits_now(line)
        return known

    def _fits_now(self, line: Line) -> bool:
        work, board = line.at(0), self.board
        workers = 1 if line.workers else work.job.min_workers
        bound = board.ledger.bound(work, work.need.times(workers), soon=False)
        return bound is None and fits(work, workers, board.room, soon=False)
