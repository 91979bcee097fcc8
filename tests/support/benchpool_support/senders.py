"""Users who submit short jobs, one after the other, even while the service is down."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from benchpool_scheduler.client import Client
from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.errors import BenchpoolError, Unavailable


@dataclass
class Sender:
    """User with a client with long timeouts, on a thread of its own.

    Every submission has a key of its own. It is retried with that key until it is accepted.

    Args:
        make: Function that returns the next submission.
        pause_s: Minimum and maximum delay between two submissions, in seconds.

    Attributes:
        sent: IDs of the accepted jobs by key.
        refused: Other answers. An outage counts only if it lasted longer than the client's timeout
            after ``end``.
    """

    name: str
    client: Client
    make: Callable[[random.Random], JobSubmission]
    chance: random.Random
    pause_s: tuple[float, float]
    sent: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    _enough: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to submit jobs."""
        self._thread = threading.Thread(target=self._send, name=self.name, daemon=True)
        self._thread.start()

    def end(self, seconds: float) -> None:
        """Submit no further job, and wait until the pending submission is answered.

        Raises:
            TimeoutError: The last submission was not answered in time.
        """
        self._enough.set()
        if self._thread is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                raise TimeoutError(f"the last submission of {self.name} took over {seconds:g} s")

    def _send(self) -> None:
        while not self._enough.is_set():
            key = f"{self.name}-{len(self.sent) + len(self.refused)}"
            submission = msgspec.structs.replace(self.make(self.chance), key=key, name=key)
            self._send_one(key, submission)
            self._enough.wait(self.chance.uniform(*self.pause_s))

    def _send_one(self, key: str, submission: JobSubmission) -> None:
        while True:
            last = self._enough.is_set()
            try:
                self.sent[key] = self.client.submit(submission).id
            except Unavailable as away:
                # While any process may be killed, an outage may exceed a client's timeout.
                if not last:
                    continue
                self.refused.append(f"{key}: {away}")
            except BenchpoolError as refused:
                self.refused.append(f"{key}: {type(refused).__name__}: {refused}")
            return
