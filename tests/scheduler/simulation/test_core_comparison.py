"""The command that compares the core with another commit runs both."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from benchpool_support import checkout

COMMAND = [sys.executable, str(checkout.ROOT / "benchmarks" / "side_by_side.py")]


def compare(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_shape_is_timed_alternately_on_both_sides() -> None:
    done = compare("HEAD", "gang:1000", "--pairs", "2")
    assert done.returncode == 0, done.stderr
    row = done.stdout.splitlines()[-1]
    number = r"[\d,]+\.\d"
    sides = rf"{number} / {number} \| {number} / {number}"
    assert re.fullmatch(rf"\| `gang` \| 1,000 \| 2 \| {sides} \| [+-]\d+\.\d % \|", row), row


def test_unmeasurable_input_is_rejected() -> None:
    assert "such as drain:1000" in compare("HEAD", "gang").stderr
    assert "no-such-commit cannot be read" in compare("no-such-commit", "gang:1000").stderr
