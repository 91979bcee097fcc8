"""What holds for all tests."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests on Kubernetes into two groups that may run side by side, each in its order.

    Those on the one cluster with real nodes wait most of their time; all others have control
    planes of their own.
    """
    for item in items:
        if item.get_closest_marker("kubernetes"):
            on_nodes = "cluster" in getattr(item, "fixturenames", ())
            item.add_marker(pytest.mark.xdist_group("nodes" if on_nodes else "control planes"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show why tests were run again: what failed once has a cause."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"run again: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
        for name, text in report.sections:
            terminalreporter.write_line(f"--- {name}\n{text}")
