"""A part of the tests' plugin that writes failures and selects tests by a file.

``--outcomes FILE`` writes a JSON object for each failure, with the load average at that moment, and
one with the counts at the end. ``--only FILE`` runs the tests whose node IDs are in a file, one per
line; the arguments are then test files. ``tests/suite.py`` uses both.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

SHOWN_LINES = 40
"""Lines of a failure that are kept."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("benchpool")
    group.addoption("--outcomes", metavar="FILE", help="write failures and counts to this file")
    group.addoption("--only", metavar="FILE", help="run the tests that this file names")


def pytest_configure(config: pytest.Config) -> None:
    """Register the writer in the process that receives the reports of all tests."""
    path = config.getoption("--outcomes")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(OutcomeWriter(Path(path)))


def deselect_others(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that ``--only`` does not name."""
    path = config.getoption("--only")
    if not path:
        return
    wanted = set(Path(path).read_text().splitlines())
    others = [item for item in items if item.nodeid not in wanted]
    items[:] = [item for item in items if item.nodeid in wanted]
    config.hook.pytest_deselected(items=others)


class OutcomeWriter:
    """Plugin that writes failures as they happen and the counts at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._counts: Counter[str] = Counter()
        path.write_text("")

    def _write(self, **facts: Any) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(facts) + "\n")

    def _write_failure(self, test: str, part: str, text: str) -> None:
        last = "\n".join(text.splitlines()[-SHOWN_LINES:])
        self._write(test=test, part=part, load=os.getloadavg()[0], text=last)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test by its call phase and write a failure."""
        if report.failed:
            self._write_failure(report.nodeid, str(report.when), report.longreprtext)
        elif report.skipped:
            self._counts["skipped"] += 1
        elif report.when == "call":
            self._counts["passed"] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Write a file that could not be collected."""
        if report.failed:
            self._write_failure(report.nodeid, "collect", report.longreprtext)

    def pytest_sessionfinish(self) -> None:
        """Write the counts."""
        self._write(passed=self._counts["passed"], skipped=self._counts["skipped"])
