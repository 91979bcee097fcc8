"""The command of docs/performance.md that says what running the tests costs."""

from __future__ import annotations

import re
import subprocess
import sys

from benchpool_support import checkout

COMMAND = [sys.executable, str(checkout.ROOT / "benchmarks" / "suite.py")]
WORKS = "import time\nwhile time.process_time() < 0.4: pass"
LEAVES = f"""
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", {WORKS!r}], start_new_session=True)
os._exit(3)
"""


def test_what_outlives_its_parent_is_waited_for_and_counted() -> None:
    done = subprocess.run(
        [*COMMAND, sys.executable, "-c", LEAVES], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 3, done.stderr
    figures = dict(re.findall(r"^\| ([a-z ]+).* \| ([0-9.]+) \|$", done.stdout, re.MULTILINE))
    assert float(figures["processor time"]) >= 0.4
    assert float(figures["by the clock"]) >= 0.4
    assert 0 < float(figures["floor"]) <= float(figures["processor time"])
    assert "still run" not in done.stdout
