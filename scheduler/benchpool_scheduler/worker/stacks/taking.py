"""Taking of stacks of the Python processes below a supervisor.

py-spy is tried first, under the account of the processes, if it is installed and has the permission
to read them (``ptrace``). Otherwise ``faulthandler`` is used: the process writes its stacks itself,
on a signal for which it installed a handler at its start (``benchpool.job_stacks``). A process
without the handler is never sent the signal, which would end it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator

from .. import process_identity
from ..supervisor import process_notes
from . import reading

NAME = "benchpool-stacks"
FROM_FIRST = 6
"""Name of the file and number of the signal for stacks, as in ``benchpool.job_stacks``."""

SPY_S, WRITE_S, LOOK_S = 10.0, 2.0, 0.01
"""Timeouts for py-spy and for a process to write, and poll interval for its output, in seconds."""

BESIDE = os.path.dirname(sys.executable)
"""Folder of this Python's programs, which may not be on the path."""

SPY_ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
MOST_PROCESSES, MOST_BYTES = 64, 256 * 1024
PYTHON = b"python"


def take(root: int) -> dict[str, object]:
    """Return the stacks of the processes below a process, in JSON types. Blocks for seconds.

    ``processes`` lists those with Python stacks: ``pid``, ``command``, ``by`` (``py-spy`` or
    ``faulthandler``) and ``threads``, each a name and its frames. ``why`` is a sentence if there
    are none, or if py-spy lacked permission.
    """
    spy = shutil.which("py-spy") or shutil.which("py-spy", path=BESIDE)
    processes, refused = list[object](), ""
    seen = 0
    for pid in (pid for pid, _ in process_notes.tree(root)):
        if len(processes) >= MOST_PROCESSES:
            break
        command = _command(pid)
        memory = _memory(pid)
        if memory is None and PYTHON not in command.split(b"\0", 1)[0]:
            continue
        seen += 1
        threads, by = reading.Threads(), ""
        if spy is not None and not refused:
            threads, refused = _spied(spy, pid)
            by = "py-spy"
        if not threads and memory is not None:
            threads, by = _written(pid, memory), "faulthandler"
        if threads:
            words = command.replace(b"\0", b" ").decode(errors="replace").strip()
            processes.append({"pid": pid, "command": words[:300], "by": by, "threads": threads})
    return {"processes": processes, "why": _why(seen, len(processes), refused)}


def _why(seen: int, reported: int, refused: str) -> str:
    if refused and reported:
        return (
            f"py-spy may not read its processes here ({refused}); the stacks are their own output."
        )
    if reported:
        return ""
    if not seen:
        return "None of its processes is Python."
    why = (
        f"py-spy may not read its processes here ({refused})"
        if refused
        else "py-spy is not installed"
    )
    return f"Its Python installed no stack dump handler at its start, and {why}."


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read(4096)
    return b""


# --------------------------------------------------------------------------- py-spy


def _spied(spy: str, pid: int) -> tuple[reading.Threads, str]:
    """Return the stacks from py-spy, or its error; it runs under the account of the process."""
    try:
        owner = os.stat(f"/proc/{pid}")
        drop = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
        done = subprocess.run(
            [spy, "dump", "--pid", str(pid)],
            capture_output=True,
            timeout=SPY_S,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd="/",
            env=SPY_ENVIRONMENT,  # readable for the owner of the process
            **(drop if os.geteuid() == 0 and owner.st_uid else {}),  # type: ignore[call-overload]
        )
    except (OSError, subprocess.SubprocessError) as error:
        return [], f"{type(error).__name__}"
    if done.returncode == 0:
        return reading.of_py_spy(done.stdout.decode(errors="replace")), ""
    if process_identity.start_ticks(pid) is None:
        return [], ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return [], lines[-1][:200] if lines else f"exit code {done.returncode}"


# --------------------------------------------------------------------------- faulthandler


def _memory(pid: int) -> str | None:
    """Return the file to which a process writes its stacks; None without a signal handler."""
    number = signal.SIGRTMIN + FROM_FIRST
    with contextlib.suppress(OSError):
        if _catches(pid, number):
            return next(_named(f"/proc/{pid}/fd"), None)
    return None


def _catches(pid: int, number: int) -> bool:
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        caught = next((line.split()[1] for line in file if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) & (1 << (number - 1)))


def _named(folder: str) -> Iterator[str]:
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError):
            if os.readlink(path).startswith(f"/memfd:{NAME} "):
                yield path


def _written(pid: int, memory: str) -> reading.Threads:
    """Let a process write its stacks, and return them; return nothing on timeout."""
    ticks = process_identity.start_ticks(pid)
    try:
        file = os.open(memory, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return []
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return []
        begin = os.fstat(file).st_size
        pidfd = process_identity.open_process(pid, ticks)
        if pidfd is None:
            return []
        try:
            signal.pidfd_send_signal(pidfd, signal.SIGRTMIN + FROM_FIRST)
        finally:
            os.close(pidfd)
        for size in _sizes(file, begin):
            if size is not None:
                text = os.pread(file, min(size - begin, MOST_BYTES), begin)
                return reading.of_faulthandler(text.decode(errors="replace"))
    except OSError:
        return []
    finally:
        os.close(file)
    return []


def _sizes(file: int, begin: int) -> Iterable[int | None]:
    """Yield None until the file has grown and is stable, then its size; end on timeout."""
    last, deadline = begin, time.monotonic() + WRITE_S
    while time.monotonic() < deadline:
        time.sleep(LOOK_S)
        size = os.fstat(file).st_size
        yield size if size > begin and size == last else None
        last = size
