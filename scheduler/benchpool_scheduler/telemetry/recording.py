"""Buffer of samples in memory, written to the database once a minute.

Samples that cannot be written are kept for the next time, up to a limit.
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
"""Maximum number of buffered samples; the oldest are dropped first."""


class Recorder:
    """Buffered writer of samples. Call ``add`` in the loop; ``write`` blocks, in any thread.

    Attributes:
        problem: Why writes fail now, or which samples were lost, as a sentence; else None.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._gpus: deque[HeldSample] = deque(maxlen=KEPT)
        self._workers: deque[HeldWorkerSample] = deque(maxlen=KEPT)
        self._failed: str | None = None
        self._lock = threading.Lock()

    @property
    def problem(self) -> str | None:
        """Return the problem to report to administrators, or None."""
        return self._failed or self.database.problem

    def add(self, gpus: Iterable[HeldSample], workers: Iterable[HeldWorkerSample] = ()) -> None:
        """Buffer samples for the next write."""
        self._gpus.extend(gpus)
        self._workers.extend(workers)

    def write(self) -> None:
        """Write all buffered samples; never raises."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        gpus, workers = list(self._gpus), list(self._workers)
        try:
            self.database.write(gpus, workers)
        except (SQLAlchemyError, OSError) as error:
            reason = getattr(error, "orig", None) or error
            self._failed = (
                f"GPU measurements cannot be written to {self.database.place} ({reason}). They "
                "are kept in memory for some hours, and the write is retried every minute. Jobs "
                "are not affected."
            )
            log.warning("%s", self._failed)
            return
        self._failed = None
        # Samples that were added meanwhile follow them.
        for written, waiting in ((gpus, self._gpus), (workers, self._workers)):
            for it in written:
                if waiting and waiting[0] is it:
                    waiting.popleft()
