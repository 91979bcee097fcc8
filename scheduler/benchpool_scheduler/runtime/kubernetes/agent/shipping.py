"""Transfer of the log and the progress as they grow; the scheduler's answers give the offsets."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchpool_scheduler.worker import log_reader, metric_lines, progress, tracker_runs

from . import environment, paths
from .link import LinkAway, LinkRefused

if TYPE_CHECKING:
    from .link import Link

PIECE = 512 * 1024
AGAIN_S = (0.5, 10.0)
"""Delay after a failure, in seconds: the first and the longest."""
ECHO_BYTES = 64 * 1024
PROGRESS_S = 1.0
VALUES = 500
"""Most reported values in one request."""
PIECES = 5
"""Most pieces of reported values in one look; the limits of a writer need two."""

FOLDER = Path(paths.WORKER)
EXCHANGE = Path(environment.EXCHANGE)


class Shipper:
    """Sends new log output and progress without long waits; copies the log to standard output."""

    def __init__(self, link: Link, checkpoint: str, *, first: bool = True) -> None:
        self._link = link
        self._metrics = metric_lines.MetricReader(EXCHANGE, speaks=first)
        self._values: list[metric_lines.ReportedValue] = []
        self._checkpoint = Path(checkpoint)
        self._offset = 0
        self._echoed = 0
        self._not_before = 0.0
        self._wait = AGAIN_S[0]
        self._looked = 0.0
        self._seen: object = None
        self._sent: object = None
        self._saved: progress.SavedCheckpoint | None = None
        self._progress = progress.ReportedProgress()
        self._runs: tuple[tracker_runs.ReportedRun, ...] = ()

    def step(self) -> bool:
        """Send at most one piece of the log; return whether there may be more."""
        self._echo()
        if time.monotonic() < self._not_before:
            return False
        try:
            more = self._ship(0.0)
            self._send_progress()
        except LinkAway:
            self._not_before = time.monotonic() + self._wait
            self._wait = min(AGAIN_S[1], self._wait * 2)
            return False
        except LinkRefused:
            self._not_before = time.monotonic() + AGAIN_S[1]
            return False
        self._wait = AGAIN_S[0]
        return more

    def finish(self, patience_s: float) -> None:
        """Send the rest; give up if the scheduler does not answer for ``patience_s`` seconds."""
        while self._echo():
            pass
        try:
            while self._ship(patience_s):
                pass
            self._looked = 0.0
            self._send_progress(over=True)
        except (LinkAway, LinkRefused):
            return

    def _ship(self, patience_s: float) -> bool:
        if log_reader.size(FOLDER) <= self._offset:
            return False
        start, data = log_reader.read(FOLDER, self._offset, PIECE)
        if not data:
            return False
        answer = self._link.post(f"log?offset={start}", data, patience_s=patience_s)
        self._offset = int(json.loads(answer)["next"])
        return True

    def _send_progress(self, *, over: bool = False) -> None:
        """Send new progress and a new complete checkpoint."""
        now = time.monotonic()
        if now - self._looked < PROGRESS_S:
            return
        self._looked = now
        self._send_values(over=over)
        files = (progress.signature(EXCHANGE), tracker_runs.signature(EXCHANGE))
        written = None if files == (None, None) else files
        saved = progress.last_checkpoint(self._checkpoint)
        # A checkpoint that still changes is incomplete. It counts when it is unchanged at the next
        # look, or when the command has ended.
        settled, self._saved = (saved if over or saved == self._saved else None), saved
        if written != self._seen:
            self._seen = written
            self._progress = progress.read_progress(EXCHANGE) or self._progress
            self._runs = tracker_runs.read_runs(EXCHANGE) or self._runs
        news = (self._progress, self._runs, settled)
        if (written is None and settled is None) or news == self._sent:
            return
        reported = self._progress
        body: dict[str, object] = {
            "fraction": reported.fraction,
            "text": reported.text,
            "metrics": dict(reported.metrics),
            "checkpoint_at": None if settled is None else settled.at,
        }
        if settled is not None and settled.step is not None:
            body["checkpoint_step"] = settled.step
        if self._runs:
            body["runs"] = self._runs
        self._link.post("progress", json.dumps(body).encode())
        self._sent = news

    def _send_values(self, *, over: bool) -> None:
        """Send the new values; values that did not arrive are sent first at the next look."""
        for _ in itertools.count() if over else range(PIECES):
            again = bool(self._values)
            self._values = self._values or self._metrics.read()
            while self._values:
                body = {"values": self._values[:VALUES]}
                with contextlib.suppress(LinkRefused):  # a repeated request would be rejected again
                    self._link.post("metrics", json.dumps(body).encode())
                del self._values[:VALUES]
            if not again and not self._metrics.behind:
                return

    def _echo(self) -> bool:
        """Write new log output to standard output, for ``kubectl logs``."""
        if log_reader.size(FOLDER) <= self._echoed:
            return False
        start, data = log_reader.read(FOLDER, self._echoed, ECHO_BYTES)
        if not data:
            return False
        self._echoed = start + len(data)
        try:
            os.write(1, data)
        except OSError:
            return False
        return True
