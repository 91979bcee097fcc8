"""The telemetry database, which may be lost without harm: a file, or a schema on a server.

A database that is damaged, or has the layout of another release, is set aside and a new one begun.
A new one is also begun when the file was removed. All methods block. They may be called from any
thread, and run one at a time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DatabaseError, SQLAlchemyError

from benchpool_scheduler.accounting.gpu_intervals import GpuInterval
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.telemetry import occupancies, reading, schema, writing, xids
from benchpool_scheduler.telemetry.reading import ActivityBucket, WorkerTotal
from benchpool_scheduler.telemetry.samples import HeldSample, HeldWorkerSample
from benchpool_scheduler.telemetry.storage import Storage, is_passing
from benchpool_scheduler.telemetry.xids import XidSeen

log = logging.getLogger(__name__)


class TelemetryUnavailable(Unavailable):
    """The database cannot be read now; the message is written for users."""

    def __init__(self) -> None:
        super().__init__(
            "GPU measurements cannot be read now. Try again in a minute. If this persists, an "
            "administrator finds the reason on the page Health and in the service's log.",
            code="telemetry-unavailable",
        )


FAULTS = (OSError, SQLAlchemyError, TelemetryUnavailable)
"""Exceptions of a database that cannot be read or written now."""
PRUNE_S = 3600.0


class Database:
    """Stored measurements.

    Args:
        storage: File or server that has the tables.
        clock: Returns seconds since the epoch.

    Attributes:
        problem: Problem with the data found there, as a sentence; None without a problem.
    """

    def __init__(self, storage: Storage, clock: Callable[[], float]) -> None:
        self.problem: str | None = None
        self._storage = storage
        self._clock = clock
        self._lock = threading.RLock()
        self._engine: Engine | None = None
        self._keys = writing.Keys()
        self._until: dict[tuple[str, bool], float] = {}
        self._pruned = float("-inf")

    # ------------------------------------------------------------------ lifecycle

    def open(self) -> None:
        """Open or create the database. Errors: OperationalError when none can be written."""
        with self._guarded():
            self._begin()

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            engine, self._engine = self._engine, None
            if engine is not None:
                engine.dispose()

    @property
    def place(self) -> str:
        """Return its location in words."""
        return self._storage.place

    def size(self) -> int:
        """Return its size in bytes, with indexes and logs."""
        return self._storage.size()

    # ------------------------------------------------------------------ writing

    def write(
        self, samples: Sequence[HeldSample], workers: Sequence[HeldWorkerSample] = ()
    ) -> None:
        """Write samples in one transaction, and periodically remove expired rows.

        The part of a sample before the last written time of its GPU is cut off, so that no time
        counts twice.

        Errors: OperationalError when it cannot be written now; then nothing was written.
        """
        with self._guarded():
            known = dict(self._until)
            fresh: list[HeldSample] = []
            for it in sorted(samples, key=lambda held: held.sample.at):
                key = (it.sample.gpu, it.sample.simulated)
                cut = writing.after(it.sample, known.get(key, float("-inf")))
                if cut is not None:
                    fresh.append(HeldSample(cut, it.holder))
                    known[key] = cut.at
            try:
                with self._connected() as connection:
                    writing.write_gpus(connection, self._keys, fresh)
                    writing.write_workers(connection, self._keys, workers)
            except BaseException:
                self._keys = writing.Keys()  # some of the new keys were rolled back
                raise
            self._until = known
            self._prune()

    def keep_occupancies(self, intervals: Sequence[GpuInterval]) -> None:
        """Write the holders of GPUs; an existing interval is extended.

        Errors: TelemetryUnavailable when it cannot be written now.
        """
        with self._answering(), self._connected() as connection:
            occupancies.keep(connection, intervals)
            occupancies.prune(connection, self._clock())

    def _prune(self) -> None:
        now = self._clock()
        if now - self._pruned >= PRUNE_S:
            with self._connected() as connection:
                writing.prune(connection, now)
            self._pruned, self._keys = now, writing.Keys()

    # ------------------------------------------------------------------ reading

    # Errors of all of them: TelemetryUnavailable when the database cannot be read now.

    def buckets(
        self,
        gpus: Collection[str] | None,
        begin: float,
        end: float,
        at_most: int,
        *,
        by_holder: bool = False,
    ) -> Sequence[ActivityBucket]:
        """Return the activity of GPUs in a range of time, by GPU and time.

        Args:
            gpus: GPUs to return, None for all that were ever measured.
            begin: Seconds since the epoch. The first bucket begins there or before, at a whole
                step. ``end``: the last bucket reaches it or beyond.
            at_most: Approximate number of buckets for each GPU, give or take one. There are fewer
                where such short steps were never stored, or are no longer kept.
            by_holder: Return a bucket for each holder in a step, instead of one for all.
        """
        with self._answering(), self._connected() as connection:
            return reading.buckets(
                connection, gpus, begin, end, at_most, self._clock(), by_holder=by_holder
            )

    def series_of(self, job: str, at_most: int = 600) -> Sequence[ActivityBucket]:
        """Return the activity of a job's GPUs while it held them, as ``buckets``, with holders."""
        with self._answering(), self._connected() as connection:
            found = reading.held(connection, schema.holders.c.job == job)
            if not found:
                return ()
            begin = min(it.begin for it, _ in found)
            end = max(it.begin + it.span_s for it, _ in found)
            return reading.buckets(
                connection,
                {it.gpu for it, _ in found},
                begin,
                end,
                at_most,
                self._clock(),
                by_holder=True,
                holders={number for _, number in found},
            )

    def totals_of(self, job: str) -> Sequence[ActivityBucket]:
        """Return the totals of each worker and GPU in each attempt of a job."""
        with self._answering(), self._connected() as connection:
            return [it for it, _ in reading.held(connection, schema.holders.c.job == job)]

    def totals_of_bench(self, lease: str) -> Sequence[ActivityBucket]:
        """Return the totals of each GPU of a bench while the bench held it."""
        with self._answering(), self._connected() as connection:
            return [it for it, _ in reading.held(connection, schema.holders.c.bench == lease)]

    def workers_of(self, job: str) -> Sequence[WorkerTotal]:
        """Return the use by each worker in each attempt of a job."""
        with self._answering(), self._connected() as connection:
            return reading.worker_totals(connection, schema.holders.c.job == job)

    def occupancies(self, begin: float, end: float) -> Sequence[GpuInterval]:
        """Return the intervals of GPU holders that overlap a range of time."""
        with self._answering(), self._connected() as connection:
            return occupancies.between(connection, begin, end)

    def xids(self, begin: float, end: float, at_most: int) -> Sequence[XidSeen]:
        """Return the newest driver errors in a range, newest first."""
        with self._answering(), self._connected() as connection:
            return xids.between(connection, begin, end, at_most)

    def newest_occupancies(self) -> Sequence[GpuInterval]:
        """Return the last interval of every GPU that was ever recorded."""
        with self._answering(), self._connected() as connection:
            return occupancies.newest(connection)

    # ------------------------------------------------------------------ internals

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Lock the database; set a damaged one aside and report it."""
        with self._lock:
            try:
                yield
            except DatabaseError as damage:
                if not is_passing(damage):
                    self._set_aside(damage)
                raise

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Lock as ``_guarded``, and log failures. Errors: TelemetryUnavailable."""
        try:
            with self._guarded():
                yield
        except (OSError, SQLAlchemyError) as fault:
            reason = getattr(fault, "orig", None) or fault
            log.warning("GPU measurements cannot be read from %s now (%s)", self.place, reason)
            raise TelemetryUnavailable from fault

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with self._begin().begin() as connection:
            yield connection

    def _begin(self) -> Engine:
        if self._engine is not None:
            how = self._storage.lost()
            if how is None:
                return self._engine
            self._let_go(how)
        try:
            return self._try()
        except DatabaseError as damage:
            if is_passing(damage):
                raise
            self._set_aside(damage)
            return self._try()

    def _try(self) -> Engine:
        engine = self._storage.connect()
        try:
            with engine.begin() as connection:
                self._until = writing.until(connection, self._clock())
        except BaseException:
            engine.dispose()
            raise
        self._engine, self._keys = engine, writing.Keys()
        return engine

    def _let_go(self, how: str) -> None:
        """Close a database that was removed, and report it."""
        self.close()
        self._until.clear()
        self.problem = (
            f"The database of GPU measurements, {self.place}, {how} while the service ran. A new "
            "one was created: earlier measurements are not shown. Jobs are not affected."
        )
        log.error("%s", self.problem)

    def _set_aside(self, damage: DatabaseError) -> None:
        """Move a damaged database aside, replacing an earlier one that was set aside."""
        self.close()
        self._until.clear()
        lies = self._storage.set_aside(damage)
        if lies is None:
            return
        self.problem = (
            f"The database of GPU measurements, {self.place}, cannot be read ({damage.orig}). "
            f"{lies}, and a new one was created: earlier measurements are not shown. Jobs are not "
            "affected."
        )
        log.error("%s", self.problem)
