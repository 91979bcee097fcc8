"""Run a command that never outlives its parent.

    python -I -S parent_death.py [--restart] COMMAND...

Used for the Hub (tied to ``benchpool up``), and by the Hub for its proxy and the scheduler. After
``kill -9`` of the parent, no process holds ports or the database. With ``--restart`` the command is
restarted when it ends unexpectedly, while the parent lives. The delay is below a second at first,
and grows to a few seconds. The script uses only the standard library and is started by path, so it
costs a few milliseconds. Jobs and notebook servers are not tied to a parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0
STEADY_S = 20.0


def tie() -> None:
    """Make the kernel end this process with its parent, and restore default signal handlers."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # A background job of a shell inherits an ignored SIGINT, with which the Hub stops services.
    for number in FORWARDED:
        signal.signal(number, signal.SIG_DFL)


def run(command: list[str]) -> None:
    """Replace this process by the command."""
    os.execvp(command[0], command)  # noqa: S606


def keep(command: list[str]) -> int:
    """Restart the command until this process gets a signal to end; return its last status."""
    pause = 0.0
    asked: list[int] = []
    child = 0

    def forward(number: int, _frame: object) -> None:
        if number != signal.SIGHUP:
            asked.append(number)
            number = signal.SIGTERM
        if child:
            try:
                os.kill(child, number)
            except ProcessLookupError:
                return  # it has just ended

    for number in FORWARDED:
        signal.signal(number, forward)
    while True:
        began, parent = time.monotonic(), os.getpid()
        child = os.fork()
        if child == 0:
            tie()
            if os.getppid() == parent:
                run(command)
            os._exit(1)
        if asked:  # the signal came before the child existed
            os.kill(child, signal.SIGTERM)
        _, raw = os.waitpid(child, 0)
        child = 0
        status = os.waitstatus_to_exitcode(raw)
        if asked:
            return max(status, 0)
        pause = next_pause(pause, time.monotonic() - began)
        _rest(pause, asked)
        if asked:
            return max(status, 0)


def next_pause(last_s: float, lived_s: float) -> float:
    """Return the delay of the next start in seconds, from the last delay and run time.

    >>> next_pause(0.0, 1.0), next_pause(0.4, 1.0), next_pause(4.0, 1.0), next_pause(4.0, 60.0)
    (0.2, 0.8, 5.0, 0.2)
    """
    if not last_s or lived_s > STEADY_S:
        return FIRST_PAUSE_S
    return min(last_s * 2, LONGEST_PAUSE_S)


def _rest(seconds: float, asked: list[int]) -> None:
    """Sleep until the time is over or a signal to end has come."""
    until = time.monotonic() + seconds
    while not asked and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.1))


def main(arguments: list[str]) -> int:
    """Run the command of the arguments."""
    tie()
    if arguments[0] == "--restart":
        return keep(arguments[1:])
    run(arguments)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
