"""What running all tests costs: processor time, the floor that it sets, and the clock.

``python benchmarks/suite.py [COMMAND...]``, by default ``make test``

Processor time is that of all the command starts, also of processes that outlive their parent: they
become children of this one, which sees them end. On N cores no order of the tests takes less than
that time / N, the floor. What other programs do meanwhile lengthens the time by the clock, and this
one little. What is still to be installed counts too: run it where ``make test`` has been run.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import time

from tables import machine

PR_SET_CHILD_SUBREAPER = 36
LEFT_S = 30.0
"""How long what the command leaves behind may take to end; what runs on is not counted."""


def run(command: list[str]) -> tuple[int, bool]:
    """Run the command; return its exit status, and whether all that it started has ended."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    own, status, until = os.posix_spawnp(command[0], command, os.environ), 0, 0.0
    try:
        while not until or time.monotonic() < until:
            pid, ended = os.waitpid(-1, os.WNOHANG if until else 0)
            if pid == own:
                status, until = os.waitstatus_to_exitcode(ended), time.monotonic() + LEFT_S
            elif not pid:
                time.sleep(0.05)
    except ChildProcessError:
        return status, True
    return status, False


def main() -> int:
    """Print the table and return the command's exit status."""
    command = sys.argv[1:] or ["make", "test"]
    began = time.monotonic()
    status, all_ended = run(command)
    clock = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor, cores = used.ru_utime + used.ru_stime, os.cpu_count() or 1
    print(f"\n### {' '.join(command)}\n\n{machine()}\n\n| what | s |\n|---|---|")
    print(f"| processor time | {processor:.1f} |")
    print(f"| floor: processor time / {cores} cores | {processor / cores:.1f} |")
    print(f"| by the clock | {clock:.1f} |")
    if not all_ended:
        print("\nSome processes still run; their time is not in it.")
    return status


if __name__ == "__main__":
    sys.exit(main())
