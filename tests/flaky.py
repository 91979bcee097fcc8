"""Run a suite again and again beside busy loops, and print which tests failed by chance.

    python tests/flaky.py [--runs 5] [--load 2] [--suite test]

The table has a row for each test that failed at least once: in how many runs it failed first and
passed by itself, and in how many it failed both times.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("support")))

from benchpool_support.busy import busy

SUITE = Path(__file__).with_name("suite.py")


def table(runs: int, load: int, flaky: Counter[str], failed: Counter[str]) -> str:
    """Return the table.

    >>> print(table(5, 2, Counter({"a.py::test_b": 1}), Counter()))
    5 runs beside 2 busy loops: 1 flaky, 0 failed
    <BLANKLINE>
    | test | flaky in runs | failed in runs |
    |---|---|---|
    | `a.py::test_b` | 1 | 0 |
    """
    lines = [
        f"{runs} runs beside {load} busy loops: {flaky.total()} flaky, {failed.total()} failed",
        "",
        "| test | flaky in runs | failed in runs |",
        "|---|---|---|",
    ]
    names = sorted({*flaky, *failed}, key=lambda name: (-flaky[name] - failed[name], name))
    return "\n".join([*lines, *(f"| `{one}` | {flaky[one]} | {failed[one]} |" for one in names)])


def main(arguments: Sequence[str]) -> int:
    """Run the suite and print the table; return 1 when a test failed in any way."""
    parser = argparse.ArgumentParser(prog="tests/flaky.py", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--load", type=int, default=2, help="number of busy loops")
    parser.add_argument("--suite", default="test")
    chosen = parser.parse_args(arguments)
    flaky, failed = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder, busy(chosen.load):
        for number in range(1, chosen.runs + 1):
            began = time.monotonic()
            command = [sys.executable, str(SUITE), chosen.suite, "--record", folder]
            status = subprocess.run(command, check=False).returncode
            flaky.update(Path(folder, "flaky.names").read_text().splitlines())
            failed.update(Path(folder, "failed.names").read_text().splitlines())
            took = time.monotonic() - began
            print(f"=== Run {number}: exit status {status} after {took:.0f} s", flush=True)
    print("\n" + table(chosen.runs, chosen.load, flaky, failed))
    return int(bool(flaky or failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
