"""A plugin of pytest: which tests took most of the processors' time, those of children included.

``PYTHONPATH=tests/support python -m pytest -p benchpool_support.processor_time tests``: what other
programs do meanwhile lengthens the time by the clock, and this one hardly. A child counts when it
has ended, so what a fixture for many tests starts counts with the last of them. Where several
processes run tests at once, it also says how long those wait at the end that are done first.
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
"""Milliseconds by test."""
ENDED: list[float] = []
"""When each process of several was done, in seconds."""


def _milliseconds() -> int:
    return round(1000 * sum(os.times()[:4]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Count what a test takes, with setting up and taking down."""
    before = _milliseconds()
    result = yield
    SPENT[item.nodeid] += _milliseconds() - before
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that began this one what was counted here."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["processor_time"] = dict(SPENT)
        output["ended"] = time.time()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add up what another process has counted."""
    output: dict[str, Any] = getattr(node, "workeroutput", {})
    SPENT.update(output.get("processor_time", {}))
    ENDED.extend([output["ended"]] if "ended" in output else [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tests and the files that took most, and the sum of all."""
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
