"""Successful starts of several simultaneous ``benchpool up --port 0`` on a busy machine.

``python benchmarks/starts_at_once.py [--starts 20] [--load 4]``

Each start has a new state folder; busy loops use the processors meanwhile. The seconds are those of
the ready lines. A start that fails is printed with its output.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import checkout  # noqa: F401
from tables import machine

from benchpool_support.busy import busy

COMMAND = (sys.executable, "-c", "from benchpool_scheduler.cli import main; main()")


class Start:
    """``benchpool up`` with a state folder of its own."""

    def __init__(self, state: Path) -> None:
        command = [*COMMAND, "up", "--json", "--state", str(state), "--port", "0", "--gpus", "2"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def first_line(self) -> dict[str, Any]:
        """Return its first output line: the ready line, or the cause of its failure."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        try:
            return dict(json.loads(line))
        except ValueError:
            return {"error": line}

    def end(self) -> None:
        """Stop it and wait."""
        self._process.terminate()
        self._process.communicate()


def start_all(folder: Path, number: int) -> list[dict[str, Any]]:
    """Start this many at the same time; return the first lines of all."""
    starts = [Start(folder / str(n)) for n in range(number)]
    try:
        return [one.first_line() for one in starts]
    finally:
        for one in starts:
            one.end()


def main() -> int:
    """Print the table; return 1 if a start failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--load", type=int, default=4)
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="starts-at-once-"))
    try:
        with busy(chosen.load):
            lines = start_all(folder, chosen.starts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = [line["seconds"] for line in lines if line.get("event") == "ready"]
    failures = [str(line) for line in lines if line.get("event") != "ready"]
    print(f"\n### {chosen.starts} starts at once beside {chosen.load} busy loops\n\n{machine()}\n")
    print("| what | value |\n|---|---|")
    print(f"| came up | {len(seconds)} of {chosen.starts} |")
    if seconds:
        print(f"| until ready, median | {statistics.median(seconds):.0f} s |")
        print(f"| until ready, longest | {max(seconds):.0f} s |")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
