"""The order of things in a worker's pod: fetch, start, watch, send, end.

Two ways lead to an end that the command did not choose. The scheduler's notice comes over HTTP,
with its reason; the pod is left alone until the grace is over, so that its last words stay. And the
pod may be taken away (SIGTERM from the kubelet): when no notice came with that, nobody of ours
wanted it, and the job is lost, not failed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

from . import carrying, child, fetching, places
from .link import Away, Link, Refused
from .order import Order, read
from .shipping import Shipper

LISTEN_S = 50.0
"""A question for notices is held open by the scheduler for so long."""
TICK_S = 0.25
NOTICE_S = 1.0
"""So long after SIGTERM a notice may still come before the pod counts as taken away."""
SEND_S = 3600.0
SEND_LEAVING_S = 20.0
"""Patience with a scheduler that is away at the end: at ease, for nobody is given the GPUs while
it is, and when the pod must go."""
SAVE_S = 60.0
"""A checkpoint is sent at most so often while the command runs."""


class Agent:
    """One worker from its pod's start to its end."""

    def __init__(self, order: Order, zipped: str) -> None:
        self._order = order
        self._zipped = zipped
        self._unwanted = threading.Event()
        self._over = threading.Event()
        self._leaving: float | None = None
        self._notice: dict[str, object] | None = None
        self._supervisor: child.Supervisor | None = None
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._sent_at: float | None = None
        self._sent_saved: float | None = None

    def run(self) -> int:
        """Do all of it and return the exit code of the pod."""
        signal.signal(signal.SIGTERM, self._told_to_leave)
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            self._prepare()
        except (fetching.CouldNotFetch, Refused) as error:
            return self._end(126, "could-not-start", str(error), None)
        except (Away, OSError) as error:
            return self._not_begun(str(error))
        if self._unwanted.is_set():
            return self._not_begun("")
        with self._lock:
            self._supervisor = child.Supervisor(
                child.told(self._order, dict(os.environ)), self._zipped
            )
        if self._notice is not None:
            self._stop(self._notice)
        if self._order.carries:
            threading.Thread(target=self._save_now_and_then, daemon=True).start()
        shipper = Shipper(self._link(), self._order.checkpoint)
        self._watch(self._supervisor, shipper)
        return self._finish(self._supervisor.end(), shipper)

    # --------------------------------------------------------------------------- begin

    def _prepare(self) -> None:
        fetching.fetch_all(self._order, self._link(self._unwanted))
        if self._order.workers > 1 and not fetching.wait_for_name(
            self._order.master, self._unwanted
        ):
            print(f"benchpool: {self._order.master} has no address yet", file=sys.stderr)

    def _not_begun(self, why: str) -> int:
        """End before the command was started."""
        if self._notice is not None:
            return self._end(None, "notice", "it was stopped before it started", None)
        if self._unwanted.is_set():
            return self._end(None, "lost", "its pod was taken away before it started", None)
        return self._end(None, "lost", f"its files could not be fetched: {why}", None)

    def _link(self, ended: threading.Event | None = None) -> Link:
        return Link(
            self._order.url, self._order.path, self._order.token, ended or threading.Event()
        )

    # --------------------------------------------------------------------------- watch

    def _watch(self, supervisor: child.Supervisor, shipper: Shipper) -> None:
        forwarded = False
        while not supervisor.over:
            more = shipper.step()
            if self._leaving is not None and self._notice is None and not forwarded:
                forwarded = time.monotonic() - self._leaving > NOTICE_S
                if forwarded:
                    supervisor.machine_ends()
            if not more:
                time.sleep(TICK_S)

    def _told_to_leave(self, *_: object) -> None:
        if self._leaving is None:
            self._leaving = time.monotonic()
            self._unwanted.set()

    def _listen(self) -> None:
        """Ask for notices for as long as the pod lives."""
        link = self._link(self._over)
        known = ""
        while not self._over.is_set():
            try:
                path = f"notice?known={known}&wait_s={LISTEN_S:g}"
                text = link.get(path, timeout_s=LISTEN_S + 20, patience_s=3600.0)
            except Refused:
                self._over.wait(10.0)
                continue
            except Away:
                continue
            notice = json.loads(text) if text else None
            if isinstance(notice, dict):
                known = str(notice.get("kind", ""))
                self._notice = notice
                self._stop(notice)

    def _stop(self, notice: dict[str, object]) -> None:
        with self._lock:
            supervisor = self._supervisor
        if supervisor is None:
            self._unwanted.set()
            return
        grace_s = float(str(notice.get("grace_s", 0)))
        supervisor.stop(
            str(notice.get("kind")), grace_s, str(notice.get("for")), str(notice.get("text"))
        )

    # --------------------------------------------------------------------------- end

    def _finish(self, end: dict[str, object], shipper: Shipper) -> int:
        code, by, text = end.get("exit_code"), str(end.get("by")), end.get("text")
        if by == "lost" and self._leaving is not None:
            by, text = ("itself", None) if code == 0 else ("lost", text or "its node was drained")
        leaving = self._leaving is not None
        patience = SEND_LEAVING_S if leaving else SEND_S
        shipper.finish(patience)
        said = self._carry(code == 0, patience)
        for sentence in said:
            print(f"benchpool: {sentence}", flush=True)
        words = " ".join([str(text), *said]) if text else " ".join(said) or None
        return self._end(code if isinstance(code, int) else None, by, words, end.get("started"))

    def _carry(self, finished: bool, patience_s: float) -> list[str]:
        """Send results of a finished command, else its checkpoint; return what went wrong."""
        try:
            if finished:
                if self._order.home is None:
                    self._send(places.RESULTS, "results", patience_s)
            elif self._order.carries:
                self._send(self._order.checkpoint, "checkpoint", patience_s)
        except (carrying.TooMuch, Away, Refused, OSError) as error:
            what = "results" if finished else "checkpoint"
            return [f"its {what} could not be sent: {error}"]
        return []

    def _send(self, folder: str, what: str, patience_s: float) -> None:
        """Pack a folder and send it. Errors: TooMuch, Away, Refused, OSError."""
        with self._sending:
            packed = os.path.join(places.ROOT, f"{what}.tar")
            size = carrying.pack(folder, packed, self._order.carry_bytes, what)
            if not size:
                return
            with open(packed, "rb") as file:
                self._link().put(what, file, size, patience_s=patience_s)
            os.unlink(packed)

    def _save_now_and_then(self) -> None:
        """Send a checkpoint that is written whole: a node that is lost must not take it along."""
        before: float | None = None
        while not self._over.wait(SAVE_S / 10):
            saved = _newest(self._order.checkpoint)
            settled, before = saved is not None and saved == before, saved
            due = self._sent_at is None or time.monotonic() - self._sent_at > SAVE_S
            if not settled or not due or saved == self._sent_saved:
                continue
            self._sent_at = time.monotonic()
            try:
                self._send(self._order.checkpoint, "checkpoint", 0.0)
            except (carrying.TooMuch, Away, Refused, OSError):
                continue
            self._sent_saved = saved

    def _end(self, code: int | None, by: str, text: str | None, started: object) -> int:
        """Leave the last words with the pod; the exit code says the same."""
        self._over.set()
        words = {"exit_code": code, "by": by, "started": started, "ended": time.time()}
        with open(places.LAST_WORDS, "w", encoding="ascii") as file:
            file.write(json.dumps({**words, "text": text and text[: places.LAST_WORDS_LENGTH]}))
        if text:
            print(f"benchpool: {text}", flush=True)
        return 1 if code is None else code


def _newest(folder: str) -> float | None:
    latest: float | None = None
    for here, _, files in os.walk(folder):
        for name in files:
            try:
                at = os.lstat(os.path.join(here, name)).st_mtime
            except OSError:
                continue
            latest = at if latest is None else max(latest, at)
    return latest


def main() -> None:
    """Run the worker of this pod."""
    os.umask(0o077)
    if not os.path.exists(os.path.join(places.TOLD, places.ORDER)):
        print(f"benchpool agent: no order in {places.TOLD}; a pod mounts it", file=sys.stderr)
        sys.exit(2)
    sys.exit(Agent(read(), places.AGENT).run())
