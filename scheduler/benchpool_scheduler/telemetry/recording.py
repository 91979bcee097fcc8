"""Samples on their way to the database: held in memory, written once a minute.

What cannot be written is kept for the next time, the newest of it at most.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable

from sqlalchemy.exc import SQLAlchemyError

from benchpool_scheduler.telemetry.database import Database
from benchpool_scheduler.telemetry.samples import HeldSample, HeldWorkerSample

log = logging.getLogger(__name__)

KEPT = 100_000
"""Samples that wait at most; the oldest go first."""


class Recorder:
    """Writes samples in pieces. ``add`` is called by the loop; ``write`` blocks, in any thread.

    Attributes:
        problem: Why nothing is written now, or what was lost, as a sentence; None for nothing.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._gpus: deque[HeldSample] = deque(maxlen=KEPT)
        self._workers: deque[HeldWorkerSample] = deque(maxlen=KEPT)
        self._failed: str | None = None
        self._lock = threading.Lock()

    @property
    def problem(self) -> str | None:
        """Return what those who look after the pool must know."""
        return self._failed or self.database.problem

    def add(self, gpus: Iterable[HeldSample], workers: Iterable[HeldWorkerSample] = ()) -> None:
        """Take samples to be written."""
        self._gpus.extend(gpus)
        self._workers.extend(workers)

    def write(self) -> None:
        """Write all that was added; never raises."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        gpus, workers = list(self._gpus), list(self._workers)
        try:
            self.database.write(gpus, workers)
        except (SQLAlchemyError, OSError) as error:
            reason = getattr(error, "orig", None) or error
            self._failed = (
                f"What GPUs do cannot be written to {self.database.place} ({reason}). It is kept "
                "in memory for some hours and tried again every minute; jobs are not touched by it."
            )
            log.warning("%s", self._failed)
            return
        self._failed = None
        # What came meanwhile stands behind.
        for written, waiting in ((gpus, self._gpus), (workers, self._workers)):
            for it in written:
                if waiting and waiting[0] is it:
                    waiting.popleft()
