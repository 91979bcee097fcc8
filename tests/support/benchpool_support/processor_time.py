"""A plugin of pytest: which tests took most of the processors' time, those of children included.

``PYTHONPATH=tests/support python -m pytest -p benchpool_support.processor_time tests``: what other
programs do meanwhile lengthens the time by the clock, and this one hardly. A child counts when it
has ended, so what a fixture for many tests starts counts with the last of them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest

SHOWN = 20
SPENT: Counter[str] = Counter()
"""Milliseconds by test."""


def _milliseconds() -> int:
    return round(1000 * sum(os.times()[:4]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Count what a test takes, with setting up and taking down."""
    before = _milliseconds()
    result = yield
    SPENT[item.nodeid] += _milliseconds() - before
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tests that took most, and the sum of all."""
    terminalreporter.section(f"processor time: {sum(SPENT.values()) / 1000:.0f} s")
    for test, spent in SPENT.most_common(SHOWN):
        terminalreporter.write_line(f"{spent / 1000:.2f} s {test}")
