"""Program that becomes a shell inside a running worker (``shell_terminal.entering``).

Its arguments are PID TICKS TERM [CGROUP...]: PID and TICKS are the worker's first process and its
start time. The shell enters the cgroups of that process (so its limits and its GPUs), its mounts,
its account, its variables and its folder. A variable of the worker marks the shell, so that the
supervisor kills it at the worker's end. Standard library only; it imports nothing after it has
changed its account.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import termios

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
NAMESPACES = (("user", CLONE_NEWUSER), ("mnt", CLONE_NEWNS))
PR_SET_NO_NEW_PRIVS = 38
SHELLS = ("/bin/bash", "/bin/sh")


class EnteredWorker:
    """Properties of the worker's first process for a shell. Raises OSError if it has ended."""

    def __init__(self, pid: int, ticks: int) -> None:
        proc = f"/proc/{pid}"
        with open(f"{proc}/status", encoding="utf-8", errors="replace") as file:
            status = dict(line.split(":", 1) for line in file if ":" in line)
        self.uid, self.gid = (int(status[name].split()[0]) for name in ("Uid", "Gid"))
        self.groups = [int(word) for word in status["Groups"].split()]
        self.no_new_privileges = int(status.get("NoNewPrivs", "0")) == 1
        with open(f"{proc}/environ", "rb") as file:
            pairs = (pair.partition(b"=") for pair in file.read().split(b"\0") if b"=" in pair)
            self.environment = {name: value for name, _, value in pairs}
        self.folder = os.open(f"{proc}/cwd", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.namespaces = [
            (os.open(f"{proc}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC), flag)
            for name, flag in NAMESPACES
            if os.readlink(f"{proc}/ns/{name}") != os.readlink(f"/proc/self/ns/{name}")
        ]
        # All of it was read from the same process, if that process still exists.
        with open(f"{proc}/stat", "rb") as file:
            if int(file.read().rpartition(b")")[2].split()[19]) != ticks:
                raise ProcessLookupError(3, "the worker has ended")


def enter(worker: EnteredWorker, groups: list[str]) -> None:
    """Move the calling process into the worker, permanently. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    for folder in groups:
        with open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write("0")
    for descriptor, flag in worker.namespaces:
        if libc.setns(descriptor, flag):
            raise OSError(ctypes.get_errno(), "its mounts cannot be entered")
    os.fchdir(worker.folder)
    if os.geteuid() == 0 and worker.uid != 0:
        os.setgroups(worker.groups)
        os.setresgid(worker.gid, worker.gid, worker.gid)
        os.setresuid(worker.uid, worker.uid, worker.uid)
    if worker.no_new_privileges and libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "its privileges cannot be assumed")


def main(arguments: list[str]) -> None:
    """Become the shell; on failure, report the error in the terminal."""
    pid, ticks, term, *groups = arguments
    try:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        worker = EnteredWorker(int(pid), int(ticks))
        enter(worker, groups)
        os.umask(0o077)
        # A service started in the background of a script ignores Ctrl-C, and its children inherit
        # that.
        for number in (
            signal.SIGINT,
            signal.SIGQUIT,
            signal.SIGTSTP,
            signal.SIGHUP,
            signal.SIGPIPE,
        ):
            signal.signal(number, signal.SIG_DFL)
        environment = {**worker.environment, b"TERM": term.encode()}
        shell = next((path for path in SHELLS if os.access(path, os.X_OK)), SHELLS[-1])
        os.execve(shell, [shell, "-i"], environment)  # noqa: S606
    except (OSError, KeyError, ValueError) as error:
        os.write(2, f"benchpool: the worker cannot be entered: {error}\r\n".encode())
    os._exit(126)
