"""A plugin of pytest that lists the tests with the most processor time, including children.

Run it with ``PYTHONPATH=tests/support python -m pytest -p benchpool_support.processor_time tests``.
Unlike the time by the clock, this time hardly depends on other programs. A child counts when it has
ended. So the processes of a fixture for many tests count with the last of them. If several
processes run tests, it also reports how long the first to finish wait at the end.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

SHOWN = 20
SPENT: Counter[str] = Counter()
"""Processor time by test, in milliseconds."""
ENDED: list[float] = []
"""Times when each of several processes finished, in seconds."""


def _milliseconds() -> int:
    return round(1000 * sum(os.times()[:4]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Count the processor time of a test, including setup and teardown."""
    before = _milliseconds()
    result = yield
    SPENT[item.nodeid] += _milliseconds() - before
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Report the counts of this process to the process that started it."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["processor_time"] = dict(SPENT)
        output["ended"] = time.time()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the counts of another process."""
    output: dict[str, Any] = getattr(node, "workeroutput", {})
    SPENT.update(output.get("processor_time", {}))
    ENDED.extend([output["ended"]] if "ended" in output else [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tests and files with the most processor time, and the total."""
    files: Counter[str] = Counter()
    for test, spent in SPENT.items():
        files[test.partition("::")[0]] += spent
    terminalreporter.section(f"processor time: {sum(SPENT.values()) / 1000:.0f} s")
    for counted in (SPENT, files):
        for name, spent in counted.most_common(SHOWN):
            terminalreporter.write_line(f"{spent / 1000:.2f} s {name}")
    if ENDED:
        early = ", ".join(f"{max(ENDED) - ended:.0f}" for ended in sorted(ENDED))
        terminalreporter.write_line(f"Processes were done before the last one by (s): {early}")
