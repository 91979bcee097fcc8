"""Delivery of a worker's results: its output folder, and files that it created or changed.

Links and special files are never followed and never copied. A file is visible at its destination
only when it is complete.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import time

from .. import machine_faults, records
from . import archives
from .child import Account
from .config import SupervisorConfig
from .snapshot import copy_bytes

MOST_FILES = 10_000
MOST_BYTES = 4 * 1024**3
LIMITS = f"{MOST_FILES} files, {MOST_BYTES} bytes"
"""Limits for the results of one worker."""

SECONDS = 1800
"""Timeout for copying, in seconds."""

FAULT_S, AGAIN_S = 60.0, 0.2
"""Timeout for a machine fault before copying begins, and delay between retries, in seconds."""

MOST_WORDS = 500
"""Most characters of an error that are reported."""


class Carrier:
    """Copies trees to one destination, within the limits."""

    def __init__(self, goal: str, most_files: int = MOST_FILES, most_bytes: int = MOST_BYTES):
        self._goal = goal
        self._files_left = most_files
        self._bytes_left = most_bytes
        self._limits = f"{most_files} files, {most_bytes} bytes"
        self.copied = 0
        self.over = 0
        self.links = 0
        self.failed: list[str] = []
        self.why: str | None = None

    def copy(self, source: str, changed_after_ns: int | None = None) -> None:
        """Copy the tree below ``source``; with an instant, only files changed after it.

        The instant is compared with ctime, which a program cannot set back.
        """
        for here, folders, files, where in os.fwalk(source, follow_symlinks=False):
            folders[:] = [name for name in folders if name not in archives.SKIPPED_FOLDERS]
            relative = os.path.relpath(here, source)
            for name in folders:
                self.links += stat.S_ISLNK(os.lstat(name, dir_fd=where).st_mode)
            for name in files:
                path = os.path.normpath(os.path.join(relative, name))
                try:
                    self._consider(where, name, path, changed_after_ns)
                except OSError as error:
                    self.failed.append(f"{path} ({error.strerror})")
                    self.why = self.why or error.strerror

    def sentences(self) -> list[str]:
        """Return sentences for the log about files that were not copied."""
        lines: list[str] = []
        if self.over:
            lines.append(
                f"{self.over} result files were left out because results are limited to "
                f"{self._limits}; they are still in the job's folder on the server"
            )
        if self.links:
            lines.append(
                f"{self.links} links or special files among the results were left out; copy the "
                "files themselves into the output folder"
            )
        if self.failed:
            shown = "; ".join(self.failed[:3])
            lines.append(f"{len(self.failed)} result files could not be copied: {shown}")
        return lines

    def _consider(self, where: int, name: str, path: str, after_ns: int | None) -> None:
        facts = os.lstat(name, dir_fd=where)
        if after_ns is not None and facts.st_ctime_ns <= after_ns:
            return
        if not stat.S_ISREG(facts.st_mode):
            self.links += 1
            return
        if self._files_left < 1 or facts.st_size > self._bytes_left:
            self.over += 1
            return
        self._files_left -= 1
        self._bytes_left -= facts.st_size
        self._carry(where, name, path, facts)

    def _carry(self, where: int, name: str, path: str, facts: os.stat_result) -> None:
        folder = open_below(self._goal, os.path.dirname(path))
        try:
            if _same(folder, os.path.basename(path), facts):
                return
            reader = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=where)
            try:
                _write(folder, os.path.basename(path), reader, facts)
            finally:
                os.close(reader)
            self.copied += 1
        finally:
            os.close(folder)


class CopyReport:
    """Result of the process that copies results.

    Attributes:
        sentences: Sentences for the log. ``why``: the first error, or None. ``over``: files were
            left out because of the limits. ``packed``: all of them were packed.
    """

    __slots__ = ("over", "packed", "sentences", "why")

    def __init__(
        self, sentences: list[str], why: str | None, over: bool = False, packed: bool = False
    ) -> None:
        self.sentences = sentences
        self.why = why
        self.over = over
        self.packed = packed

    def encode(self) -> bytes:
        """Return the report as JSON; ``CopyReport(*json.loads(...))`` is the inverse."""
        return json.dumps([self.sentences, self.why, self.over, self.packed]).encode()


class SentResults:
    """Outcome of the delivery of results.

    Attributes:
        sentences: Sentences for the log.
        undelivered: Why results were not delivered and where they are, as a clause for the record
            of the end; None if all were delivered.
    """

    __slots__ = ("sentences", "undelivered")

    def __init__(self, sentences: list[str], undelivered: str | None = None) -> None:
        self.sentences = sentences if undelivered is None else [*sentences, undelivered]
        self.undelivered = undelivered


def send_home(
    account: Account | None, config: SupervisorConfig, files: str | None, after_ns: int
) -> SentResults:
    """Copy results to ``config.output_dir`` in a process of the worker's account.

    ``files`` is the worker's copy of the snapshot, or None if it ran elsewhere. Its changed files
    are copied first, so that the output folder takes precedence. Results that cannot be copied are
    packed into ``config.carried``. The copy is removed once all results are in either place. Faults
    of the machine are retried.
    """
    last = time.monotonic() + FAULT_S
    if config.carried is not None:
        with contextlib.suppress(OSError):
            os.unlink(config.carried)  # of an earlier attempt
    while config.output_dir is not None:
        try:
            report = _send(account, config, files, after_ns, config.output_dir)
            return SentResults(report.sentences, _undelivered(report, config))
        except OSError as error:
            if machine_faults.number_of(error) is None or time.monotonic() >= last:
                return SentResults([], _undelivered(CopyReport([], error.strerror), config))
        time.sleep(AGAIN_S)
    return SentResults([])


def _undelivered(report: CopyReport, config: SupervisorConfig) -> str | None:
    if report.why is None and not report.over:
        return None
    part, why = ("", report.why) if report.why else (" completely", f"limit: {LIMITS}")
    what = f"{records.UNDELIVERED} copied{part} to {config.output_dir} ({why})"
    if report.packed:
        return f"{what}; {records.KEPT}"
    return what if config.carried is None else f"{what}; they are still in {config.output}"


def _send(
    account: Account | None, config: SupervisorConfig, files: str | None, after_ns: int, goal: str
) -> CopyReport:
    """Copy or pack the results in a child process. Raises OSError if it cannot be started."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    archive = archives.Archive(config.carried)
    try:
        pid = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        archive.close(keep=False)
        raise
    if pid == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS)
            if account is not None:
                account.drop_to()
            report = _carry_all(goal, config.output, files, after_ns, archive.file)
            os.write(writer, report.encode())
        except BaseException as error:
            os.write(writer, CopyReport([], str(error)[:MOST_WORDS]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        data = file.read()
    _, status = os.waitpid(pid, 0)
    report = CopyReport([], _ended(status)) if status else CopyReport(*json.loads(data))
    archive.close(keep=report.packed)
    return report


def _ended(status: int) -> str:
    """Return why the copying process ended early."""
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return f"it took longer than {SECONDS} s"
    return "the process that copied them was killed"


def _carry_all(
    goal: str, output: str, files: str | None, after_ns: int, archive: int | None
) -> CopyReport:
    """Copy the results to ``goal``; on failure pack them into the open file ``archive``."""
    trees: list[tuple[str, int | None]] = [] if files is None else [(files, after_ns)]
    trees.append((output, None))
    carrier = Carrier(goal)
    for tree, after in trees:
        if os.path.isdir(tree):
            carrier.copy(tree, after)
    packed = bool(carrier.failed) and archive is not None and archives.pack(archive, trees)
    if files is not None and (packed or not (carrier.over or carrier.failed)):
        remove_tree(files)
    return CopyReport(carrier.sentences(), carrier.why, carrier.over > 0, packed)


def open_below(goal: str, relative: str) -> int:
    """Open a folder below ``goal``, and create it if missing; follow no link below ``goal``."""
    os.makedirs(goal, mode=0o700, exist_ok=True)
    here = os.open(goal, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in [part for part in relative.split("/") if part]:
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=here)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            below = os.open(part, flags, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


def _same(folder: int, name: str, facts: os.stat_result) -> bool:
    try:
        there = os.lstat(name, dir_fd=folder)
    except OSError:
        return False
    return (
        stat.S_ISREG(there.st_mode)
        and there.st_size == facts.st_size
        and there.st_mtime_ns == facts.st_mtime_ns
    )


def _write(folder: int, name: str, reader: int, facts: os.stat_result) -> None:
    temporary = f".benchpool-{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    writer = os.open(temporary, flags, stat.S_IMODE(facts.st_mode) & 0o777, dir_fd=folder)
    try:
        try:
            copy_bytes(reader, writer)
            os.utime(writer, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        finally:
            os.close(writer)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(temporary, dir_fd=folder)
        raise


def remove_tree(folder: str) -> None:
    """Remove a folder with all its contents, following no link; ignore errors."""
    for _, folders, files, where in os.fwalk(folder, topdown=False, follow_symlinks=False):
        for name in files:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=where)
        for name in folders:
            linked = stat.S_ISLNK(os.lstat(name, dir_fd=where).st_mode)
            with contextlib.suppress(OSError):
                (os.unlink if linked else os.rmdir)(name, dir_fd=where)
