"""What holds for all tests."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests on the one cluster with real nodes: they may run beside all others."""
    # Those on our images as well: two runs must not make images at the same time.
    takes = {"cluster", "cluster_use", "images"} & set(getattr(item, "fixturenames", ()))
    if takes and item.get_closest_marker("kubernetes"):
        item.add_marker(pytest.mark.nodes)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show why tests were run again: what failed once has a cause."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"run again: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
        for name, text in report.sections:
            terminalreporter.write_line(f"--- {name}\n{text}")
