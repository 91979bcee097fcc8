"""Run a command that never outlives its parent.

    python -I -S parent_death.py [--restart] COMMAND...

Used for the Hub (tied to ``benchpool up``), and by the Hub for its proxy and the scheduler: after
``kill -9`` of the parent nothing is left that holds ports or the database. With ``--restart`` the
command is started again when it ends unasked, for as long as the parent lives: at first within a
second, then after pauses that grow to a few seconds. Only the standard library, started by path:
it costs a few milliseconds. Jobs and notebook servers are not tied to anything.
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
    """Have the kernel end this process when its parent ends, and take default signals back."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # A background job of a shell inherits an ignored SIGINT, by which the Hub stops services.
    for number in FORWARDED:
        signal.signal(number, signal.SIG_DFL)


def run(command: list[str]) -> None:
    """Become the command."""
    os.execvp(command[0], command)  # noqa: S606


def keep(command: list[str]) -> int:
    """Run the command again and again until somebody ends this process; return its last status."""
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
                return  # it has just ended by itself

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
        if asked:  # the signal came before there was a child to tell
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
    """Return the seconds before the next start, from the last pause and how long it lived since.

    >>> next_pause(0.0, 1.0), next_pause(0.4, 1.0), next_pause(4.0, 1.0), next_pause(4.0, 60.0)
    (0.2, 0.8, 5.0, 0.2)
    """
    if not last_s or lived_s > STEADY_S:
        return FIRST_PAUSE_S
    return min(last_s * 2, LONGEST_PAUSE_S)


def _rest(seconds: float, asked: list[int]) -> None:
    """Sleep, but no longer than until a signal has asked for the end."""
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
