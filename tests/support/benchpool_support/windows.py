"""Windows of users in a real browser, for a ``conftest.py``: import the names unchanged.

They are closed when the tests end, and a screenshot of each is saved when a test fails.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest
from playwright.sync_api import Browser

from benchpool_support.people import Person, screen

OPEN: list[Person] = []
PICTURES = "test-results"


def opened(person: Person) -> Person:
    """Register a user's window as open."""
    OPEN.append(person)
    return person


def close_all() -> None:
    """Close all windows."""
    while OPEN:
        OPEN.pop().leave()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Save a screenshot of every open window when a test fails."""
    report = yield
    if report.failed:
        folder = item.config.rootpath / PICTURES
        folder.mkdir(exist_ok=True)
        for window in OPEN:
            window.page.screenshot(path=folder / f"{item.name}-{window.name}.png")
    return report


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium, which ends with its module: while it runs, no other event loop can."""
    with screen() as running:
        yield running
