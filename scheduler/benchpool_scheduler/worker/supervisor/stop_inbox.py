"""Requests to stop for a supervisor: by ``stop.json``, or by a signal if no file can be written."""

from __future__ import annotations

from .. import records, stop_signals
from .config import StopRequest

AGAIN_S = (0.1, 5.0)
"""Delay before ``stop.json`` is read again after a fault, in seconds: the first and the longest."""

WORDLESS = "it was asked to stop; the reason could not be stored"


class StopInbox:
    """Requests in the order in which they are to be handled.

    Args:
        folder: The worker's folder. ``grace_s``: grace period of a stop by a signal.

    Attributes:
        look_at: Time of the next look, in monotonic seconds; None for the next signal.
    """

    def __init__(self, folder: str, grace_s: float) -> None:
        self._folder = folder
        self._grace_s = grace_s
        self._unread = True
        self._wordless: str | None = None
        self._pause = AGAIN_S[0]
        self.look_at: float | None = None

    def heed(self, signals: bytes) -> None:
        """Record received signals."""
        if stop_signals.LOOK in signals:
            self._unread, self.look_at = True, None
        self._wordless = stop_signals.kind_of(signals) or self._wordless

    def take(self, now: float) -> list[StopRequest]:
        """Return new requests; a file that cannot be read now is read again later."""
        found = []
        if self._unread and (self.look_at is None or now >= self.look_at):
            try:
                record = records.read(self._folder, records.STOP)
            except OSError:
                self.look_at = now + self._pause
                self._pause = min(2 * self._pause, AGAIN_S[1])
            else:
                self._unread, self.look_at, self._pause = False, None, AGAIN_S[0]
                if record is not None:
                    found.append(StopRequest.of(record))
        if self._wordless is not None:
            found.append(StopRequest(self._wordless, self._grace_s, "", WORDLESS))
            self._wordless = None
        return found
