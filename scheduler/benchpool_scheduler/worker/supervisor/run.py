"""Sequence of a supervisor: prepare files, start, watch, stop, end, deliver results.

Its configuration is JSON on standard input, an anonymous file that is never on a disk because the
environment may hold secrets. Its output is in the worker's folder:

    process.json   identity of the supervisor, and start time of the command
    exit.json      record of the end; on the disk before any later step
    log, log.*     output of the command

The lock held on the inherited descriptor shows that the supervisor lives. ``stop_signals`` lists
the signals that it supports.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

from .. import machine_faults, process_identity, records, stop_signals
from ..log_writer import BURST, RATE, LogWriter, TokenBucket
from . import cgroups, child, containment, outcome, private_folder, results, schedule, snapshot
from .bar_progress import BarProgress
from .config import StopRequest, SupervisorConfig
from .kept_records import DISK_S, KeptRecord, add_undelivered, end
from .last_step import close_runs
from .process_notes import ProcessNotes
from .stop_inbox import StopInbox

LOCK_FD = 3
READY_FD = 4
"""Inherited descriptors: the lock, and a pipe that closes when the command has been started."""

CHUNK = 64 * 1024
FAULT_S = 0.1
KILL_PAUSE_S = (0.01, 1.0)
"""Delays after a fault, and between rounds of SIGKILL (shortest and longest), in seconds."""


def main(arguments: list[str]) -> None:
    """Supervise the worker whose folder is the argument."""
    with os.fdopen(0, "rb", closefd=False) as file:
        config = SupervisorConfig(file.read())
    os.closerange(READY_FD + 1, 1 << 20)
    null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.close(null)
    for descriptor in (LOCK_FD, READY_FD):
        os.set_inheritable(descriptor, False)
    os.umask(0o077)
    os.chdir("/")
    try:
        Supervisor(arguments[0], config).run()
    except BaseException as error:
        # If no record can be written, the exit status is the ``errno`` of the fault.
        number = machine_faults.number_of(error)
        if number is None:
            raise
        sys.exit(number)


class Supervisor:
    """One worker from its start to its end."""

    def __init__(self, folder: str, config: SupervisorConfig) -> None:
        self._folder = folder
        self._config = config
        self._exchange = os.path.join(folder, records.EXCHANGE)
        self._files = os.path.join(folder, records.FILES)
        self._account: child.Account | None = None
        self._group: cgroups.Group | None = None
        self._place: child.StartPlace | None = None
        self._leader = -1
        self._status: int | None = None
        self._started: float | None = None
        self._children = True
        self._stop: schedule.Stop | None = None
        self._limit_at: float | None = None
        self._killed = self._over = False
        self._last_words = KeptRecord(folder, records.EXIT)
        self._introduction = KeptRecord(folder, records.PROCESS)
        self._inbox = StopInbox(folder, config.grace_s)
        self._notes = ProcessNotes(folder)
        self._kill_pause = KILL_PAUSE_S[0]
        self._oom_before = 0
        self._after_ns = 0
        self._poll = select.poll()
        self._wakeup = self._catch_signals()
        self._output = -1
        self._log = LogWriter(folder, config.log_bytes)
        self._tail = b""
        self._bars = BarProgress(self._exchange)
        self._bucket = TokenBucket(RATE, BURST, time.monotonic())

    def run(self) -> None:
        """Run all steps; after any error, end all processes and record the end."""
        try:
            containment.become_subreaper()
            self._introduce()
            self._look_for_stop(time.monotonic())
            if self._stop is None:
                self._prepare()
                self._heed(self._signals())
                self._look_for_stop(time.monotonic())
            if self._stop is None:
                self._start()
            os.close(READY_FD)
            if self._started is not None:
                self._watch()
            self._finish(*self._outcome())
        except (child.StartFailed, snapshot.BadSnapshot) as error:
            self._finish(getattr(error, "code", 126), "could-not-start", f"{error}")
        except BaseException as error:
            if self._over:  # the end of the worker is recorded already
                raise
            number = machine_faults.number_of(error)
            if number is not None and self._started is None:
                return self._could_not_begin(number)
            self._kill_all()
            self._log.write_line(f"the supervisor of this worker failed: {error!r}")
            self._finish(None, "lost", f"the supervisor of the worker failed: {error!r}")
            raise

    # --------------------------------------------------------------------------- start

    def _could_not_begin(self, number: int) -> None:
        """Record that the machine failed the start; nothing has run."""
        if self._group is not None:
            self._group.remove()
        with contextlib.suppress(OSError):
            results.remove_tree(self._files)
        text = machine_faults.sentence(number)
        self._log.write_line(text)
        record = {**end(None, "machine-fault", text, None), "fault": number}
        self._last_words.write(record, durable=True)

    def _catch_signals(self) -> int:
        wakeup, sender = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
        stops = (stop_signals.LOOK, *stop_signals.WORDLESS.values())
        for number in (signal.SIGCHLD, signal.SIGTERM, *stops):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        self._poll.register(wakeup, select.POLLIN)
        return wakeup

    def _introduce(self) -> None:
        record: dict[str, object] = {
            "version": 1,
            "boot_id": process_identity.boot_id(),
            "pid": os.getpid(),
            "start_ticks": process_identity.start_ticks(os.getpid()),
            "started": self._started,
            "group": None if self._group is None else self._group.folders[0],
            "groups": [] if self._group is None else list(self._group.folders),
            "tag": self._config.tag,
            "heeds": stop_signals.HEEDS,
        }
        self._introduction.write(record, durable=False)

    def _prepare(self) -> None:
        """Create the folders that the worker may write to, and write its files."""
        self._account = child.find_account(self._config.account)
        self._last_words.reserve()
        self._introduction.reserve()
        owner = None if self._account is None else (self._account.uid, self._account.gid)
        for folder in [*self._config.folders, self._exchange]:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            if owner is not None:
                os.chown(folder, *owner, follow_symlinks=False)
        snapshot.lay_out_for(self._files, self._config, owner)
        if self._config.cwd is None:
            self._after_ns = snapshot.instant(self._folder)

    def _start(self) -> None:
        name = f"{self._config.name}-{os.getpid()}"
        self._group = cgroups.make(name, self._config.bounds)
        self._oom_before = containment.out_of_memory_kills(self._group)
        self._output, writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._output, False)
        try:
            self._place = child.StartPlace(
                self._config.env,
                self._config.cwd or self._files,
                private_folder.confinement(self._folder, self._config, self._group, self._account),
                self._exchange,
            )
            self._leader = child.spawn(self._config.argv, self._place, writer)
        finally:
            os.close(writer)
        self._poll.register(self._output, select.POLLIN)
        self._started = time.time()
        if self._config.time_limit_s is not None:
            self._limit_at = time.monotonic() + self._config.time_limit_s
        self._introduce()
        if self._group is None:
            self._notes.look(time.monotonic())

    # --------------------------------------------------------------------------- watch

    def _watch(self) -> None:
        while self._status is None or self._children:
            self._wait()
            self._reap()
            now = time.monotonic()
            self._look_for_stop(now)
            if self._notes.look_at is not None and now >= self._notes.look_at:
                self._notes.look(now)
            if self._children:
                self._step_patiently(now)
        # Processes that left the tree.
        containment.sweep_until_clean(self._config.tag, self._group, KILL_PAUSE_S[0])
        while self._pump():
            pass

    def _wait(self) -> None:
        now = time.monotonic()
        throttled = self._bucket.wait(now)
        if self._output >= 0:
            self._poll.modify(self._output, 0 if throttled else select.POLLIN)
        look_at = self._inbox.look_at if self._status is None else None
        filled = None if not throttled else now + throttled
        due = [self._due_at(), look_at, self._notes.look_at, filled]
        nearest = min((at for at in due if at is not None), default=now + 60.0)
        for descriptor, what in self._poll.poll(max(0.0, nearest - now) * 1000):
            if descriptor == self._wakeup:
                self._heed(self._signals())
            elif what:  # also for a closed pipe, which has little left
                self._pump()

    def _due_at(self) -> float | None:
        if self._killed:
            return time.monotonic() + self._kill_pause
        if self._stop is not None:
            return self._stop.due_at()
        return self._limit_at

    def _pump(self) -> bool:
        """Move one chunk of output to the log; return whether there may be more."""
        if self._output < 0:
            return False
        try:
            data = os.read(self._output, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._poll.unregister(self._output)
            os.close(self._output)
            self._output = -1
            return False
        self._log.write(data)
        self._tail = outcome.last_of(self._tail + data)
        self._bars.take(
            data, time.monotonic(), None if self._account is None else self._account.uid
        )
        self._bucket.take(len(data), time.monotonic())
        return True

    def _reap(self) -> None:
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._leader:
                    self._status = status
        except ChildProcessError:
            # The supervisor inherits all orphans as sub-reaper: no child left means no process
            # left.
            self._children = False

    # --------------------------------------------------------------------------- stop

    def _signals(self) -> bytes:
        try:
            return os.read(self._wakeup, 4096)
        except BlockingIOError:
            return b""

    def _heed(self, signals: bytes) -> None:
        self._inbox.heed(signals)
        if signal.SIGTERM in signals and self._stop is None:
            text = "the machine is shutting down"
            self._begin(StopRequest("pause", self._config.grace_s, "the machine", text), "lost")

    def _look_for_stop(self, now: float) -> None:
        """Handle requests to stop; one may come before the start, and a cancel after a pause."""
        if self._status is not None:
            return
        for request in self._inbox.take(now):
            if self._stop is None:
                self._begin(request, "notice")
            elif request.kind == "cancel" and self._stop.kind == "pause":
                self._stop.hasten(request.grace_s, now)
                self._write_notice(request)

    def _begin(self, request: StopRequest, by: str) -> None:
        self._write_notice(request)
        self._stop = schedule.Stop(request.kind, by, request.grace_s, time.monotonic())

    def _write_notice(self, request: StopRequest) -> None:
        """Write the notice file; if the worker prevents that, it still gets the signals."""
        notice = request.as_notice(time.time())
        uid = None if self._account is None else self._account.uid
        try:
            records.write(self._exchange, records.NOTICE, notice, durable=False, uid=uid)
        except OSError as error:
            if self._started is not None:
                self._log.write_line(f"the notice could not be written: {error.strerror}")

    def _step_patiently(self, now: float) -> None:
        try:
            self._step(now)
        except OSError as error:
            if machine_faults.number_of(error) is None:
                raise
            time.sleep(FAULT_S)  # processes could not be listed; the step is repeated

    def _step(self, now: float) -> None:
        if self._stop is None:
            if self._status is not None:
                self._stop = schedule.Stop("cancel", "itself", schedule.LEFTOVER_S, now)
            elif self._limit_at is not None and now >= self._limit_at:
                text = "the time limit is reached"
                self._begin(StopRequest("cancel", self._config.grace_s, "", text), "time-limit")
        if self._stop is None:
            return
        step = self._stop.step(now, leads=self._leader > 0 and self._status is None)
        if step == schedule.KILL:
            self._kill()
        elif step is not None:
            everybody, first = self._all(), step == schedule.LEADER
            chosen = [one for one in everybody if (one[0] == self._leader) is first]
            containment.send(everybody if step == schedule.ALL else chosen, signal.SIGTERM)

    def _all(self) -> containment.Processes:
        """Return the running processes, parents first."""
        tree = containment.descendants(os.getpid())
        return [*tree, *(one for one in containment.tagged(self._config.tag) if one not in tree)]

    def _kill(self) -> None:
        """Send SIGKILL to all processes once; the pauses between rounds grow.

        A process that hangs in the kernel keeps the supervisor, and so the GPU, until it is gone.
        """
        if self._killed:
            self._kill_pause = min(self._kill_pause * 1.5, KILL_PAUSE_S[1])
        self._killed = True
        if self._group is not None:
            self._group.kill()
        containment.send(self._all(), signal.SIGKILL)

    def _kill_all(self) -> None:
        while self._started is not None and self._children:
            self._kill()
            time.sleep(self._kill_pause)
            self._reap()

    # --------------------------------------------------------------------------- end

    def _outcome(self) -> tuple[int | None, str, str | None]:
        """Return exit code, cause of the end, and a sentence for the user."""
        if self._status is None:
            return None, "notice", "it was stopped before it started"
        code, by = schedule.exit_code(self._status), self._stop.by if self._stop else "itself"
        bounds = self._config.bounds
        seen = outcome.look(self._group, bounds, self._oom_before, by, self._killed)
        return code, *outcome.words(code, seen, self._tail)

    def _finish(self, code: int | None, by: str, text: str | None) -> None:
        if by == "could-not-start":
            self._log.write_line(str(text))
        record = end(code, by, text, self._started, self._tail)
        self._last_words.write(record, durable=True, patience_s=DISK_S)
        self._over = True
        self._introduction.give_back()
        if self._place is not None and code is not None and by != "lost":
            for sentence in close_runs(self._place, code, self._config.tag):
                self._log.write_line(sentence)
        if self._group is not None:
            self._group.remove()
        private_folder.remove(self._folder)
        if self._started is not None:
            self._bring_home(record)
        self._log.close()

    def _bring_home(self, record: dict[str, object]) -> None:
        """Copy the results under the worker's account; a paused worker has none yet."""
        if self._stop is not None and self._stop.kind == "pause" and record["exit_code"] != 0:
            return
        files = self._files if self._after_ns else None
        sent = results.send_home(self._account, self._config, files, self._after_ns)
        for sentence in sent.sentences:
            self._log.write_line(sentence)
        add_undelivered(self._last_words, record, sent.undelivered)
