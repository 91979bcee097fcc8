"""The steps of the agent in a worker's pod: fetch, start, watch, send, end.

The command can be stopped in two ways. The scheduler's notice arrives over HTTP, with its reason.
The pod is then kept until the grace period is over, so that its termination message is preserved.
Or the kubelet removes the pod (SIGTERM). Without a notice, benchpool did not cause this, and the
job is lost rather than failed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

from benchpool_scheduler.worker import job_package
from benchpool_scheduler.worker.stacks import taking

from . import archives, fetching, paths, supervised_command
from .children import Children
from .config import AgentConfig, read
from .link import Link, LinkAway, LinkRefused
from .shells import WorkerShells
from .shipping import Shipper

LISTEN_S = 50.0
"""Duration for which the scheduler holds a poll for notices open, in seconds."""
TICK_S = 0.25
NOTICE_S = 1.0
"""Delay after SIGTERM in which a notice may still arrive, in seconds.

After it the pod counts as removed.
"""
SEND_S = 3600.0
SEND_LEAVING_S = 20.0
"""Timeouts for sending the remaining data to an unreachable scheduler, in seconds.

The second one applies when the pod is being removed. An hour blocks no GPUs, because an unreachable
scheduler assigns them to no other job.
"""
SAVE_S = 60.0
"""Shortest interval between checkpoints that are sent while the command runs, in seconds."""


class Agent:
    """One worker, from the start of its pod to its end."""

    def __init__(self, config: AgentConfig, zipped: str) -> None:
        self._config = config
        self._zipped = zipped
        self._unwanted = threading.Event()
        self._over = threading.Event()
        self._leaving: float | None = None
        self._notice: dict[str, object] | None = None
        self._supervisor: supervised_command.SupervisedCommand | None = None
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._sent_at: float | None = None
        self._sent_saved: float | None = None
        self._children = Children()
        self._shells = WorkerShells(zipped, self._children, self._link)

    def run(self) -> int:
        """Run all steps and return the exit code of the pod."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            self._prepare()
        except (fetching.CouldNotFetch, LinkRefused) as error:
            return self._end(126, "could-not-start", str(error), {})
        except (LinkAway, OSError) as error:
            return self._not_begun(str(error))
        if self._unwanted.is_set():
            return self._not_begun("")
        with self._lock:
            self._supervisor = supervised_command.SupervisedCommand(
                supervised_command.supervisor_config(self._config, dict(os.environ)),
                self._zipped,
                self._children,
            )
        if self._notice is not None:
            self._stop(self._notice)
        if self._config.carries:
            threading.Thread(target=self._save_now_and_then, daemon=True).start()
        shipper = Shipper(self._link(), self._config.checkpoint, first=self._config.index == 0)
        self._watch(self._supervisor, shipper)
        self._shells.close()
        return self._finish(self._supervisor.end(), shipper)

    # --------------------------------------------------------------------------- begin

    def _prepare(self) -> None:
        with zipfile.ZipFile(self._zipped) as own:
            job_package.write(Path(paths.PACKAGE), own.read(job_package.NAME))
        fetching.fetch_all(self._config, self._link(self._unwanted))
        if self._config.workers > 1 and not fetching.wait_for_name(
            self._config.master, self._unwanted
        ):
            print(f"benchpool: {self._config.master} has no address yet", file=sys.stderr)

    def _not_begun(self, why: str) -> int:
        """End the pod of a command that was not started."""
        if self._notice is not None:
            return self._end(None, "notice", "it was stopped before it started", {})
        if self._unwanted.is_set():
            return self._end(None, "lost", "its pod was deleted before it started", {})
        return self._end(None, "lost", f"its files could not be fetched: {why}", {})

    def _link(self, ended: threading.Event | None = None) -> Link:
        return Link(
            self._config.url, self._config.path, self._config.token, ended or threading.Event()
        )

    # --------------------------------------------------------------------------- watch

    def _watch(self, supervisor: supervised_command.SupervisedCommand, shipper: Shipper) -> None:
        forwarded = False
        while not supervisor.over:
            more = shipper.step()
            if self._leaving is not None and self._notice is None and not forwarded:
                forwarded = time.monotonic() - self._leaving > NOTICE_S
                if forwarded:
                    supervisor.machine_ends()
            if not more:
                time.sleep(TICK_S)

    def _on_sigterm(self, *_: object) -> None:
        if self._leaving is None:
            self._leaving = time.monotonic()
            self._unwanted.set()

    def _listen(self) -> None:
        """Poll for notices until the pod ends."""
        link = self._link(self._over)
        known, looked, shell = "", 0, ""
        while not self._over.is_set():
            try:
                path = f"notice?known={known}&looked={looked}&shell={shell}&wait_s={LISTEN_S:g}"
                text = link.get(path, timeout_s=LISTEN_S + 20, patience_s=3600.0)
            except LinkRefused:
                self._over.wait(10.0)
                continue
            except LinkAway:
                continue
            notice = json.loads(text) if text else None
            if isinstance(notice, dict) and notice.get("kind") == "look":
                looked = int(notice["number"])
                threading.Thread(target=self._look, daemon=True).start()
            elif isinstance(notice, dict) and notice.get("kind") == "shell":
                shell = str(notice["shell"])
                with self._lock:
                    supervisor = self._supervisor
                self._shells.open(notice, None if supervisor is None else supervisor.pid)
            elif isinstance(notice, dict):
                known = str(notice.get("kind", ""))
                self._notice = notice
                self._stop(notice)

    def _look(self) -> None:
        """Send the stacks of the command's Python processes."""
        with self._lock:
            supervisor = self._supervisor
        nothing: dict[str, object] = {"processes": [], "why": "It has not started yet."}
        found = nothing if supervisor is None else taking.take(supervisor.pid)
        with contextlib.suppress(LinkAway, LinkRefused):
            self._link().post("stacks", json.dumps(found).encode())

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
        sentences = self._carry(code == 0, patience)
        for sentence in sentences:
            print(f"benchpool: {sentence}", flush=True)
        words = " ".join([str(text), *sentences]) if text else " ".join(sentences) or None
        why = {name: end.get(name) for name in ("started", "cause", "traceback")}
        return self._end(code if isinstance(code, int) else None, by, words, why)

    def _carry(self, finished: bool, patience_s: float) -> list[str]:
        """Send results of a finished command, else its checkpoint; return the problems."""
        try:
            if finished:
                if self._config.home is None:
                    self._send(paths.RESULTS, "results", patience_s)
            elif self._config.carries:
                self._send(self._config.checkpoint, "checkpoint", patience_s)
        except (archives.TooMuch, LinkAway, LinkRefused, OSError) as error:
            what = "results" if finished else "checkpoint"
            return [f"its {what} could not be sent: {error}"]
        return []

    def _send(self, folder: str, what: str, patience_s: float) -> None:
        """Pack a folder and send it. Raises TooMuch, LinkAway, LinkRefused or OSError."""
        with self._sending:
            packed = os.path.join(paths.ROOT, f"{what}.tar")
            size = archives.pack(folder, packed, self._config.carry_bytes, what)
            if not size:
                return
            with open(packed, "rb") as file:
                self._link().put(what, file, size, patience_s=patience_s)
            os.unlink(packed)

    def _save_now_and_then(self) -> None:
        """Send each complete checkpoint, so that it survives the loss of the node."""
        before: float | None = None
        while not self._over.wait(SAVE_S / 10):
            saved = _newest(self._config.checkpoint)
            settled, before = saved is not None and saved == before, saved
            due = self._sent_at is None or time.monotonic() - self._sent_at > SAVE_S
            if not settled or not due or saved == self._sent_saved:
                continue
            self._sent_at = time.monotonic()
            try:
                self._send(self._config.checkpoint, "checkpoint", 0.0)
            except (archives.TooMuch, LinkAway, LinkRefused, OSError):
                continue
            self._sent_saved = saved

    def _end(self, code: int | None, by: str, text: str | None, more: Mapping[str, object]) -> int:
        """Write the end to the termination log and return the exit code."""
        self._over.set()
        words = {"exit_code": code, "by": by, "ended": time.time(), **more}
        with open(paths.TERMINATION_LOG, "w", encoding="ascii") as file:
            file.write(json.dumps({**words, "text": text and text[: paths.TERMINATION_LOG_LENGTH]}))
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
    if not os.path.exists(os.path.join(paths.CONFIG_FOLDER, paths.CONFIG_FILE)):
        print(
            f"benchpool agent: no configuration in {paths.CONFIG_FOLDER}; a worker's pod mounts it",
            file=sys.stderr,
        )
        sys.exit(2)
    sys.exit(Agent(read(), paths.AGENT).run())
