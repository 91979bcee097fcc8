"""What holds for all tests."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

import benchpool_support.examples  # noqa: F401  # which examples property tests draw
from benchpool_scheduler.workstation import jupyter
from benchpool_support.error_logs import error_logs as error_logs
from benchpool_support.outcomes import deselect_others
from benchpool_support.outcomes import pytest_addoption as pytest_addoption
from benchpool_support.outcomes import pytest_configure as pytest_configure

# As the programs that they test do; it takes a second from each process of tests.
jupyter.load_jsonschema()


def pytest_collection_finish() -> None:
    """Leave what was imported out of later collections of garbage: it stays to the end."""
    gc.collect()
    gc.freeze()


TESTS = Path(__file__).parent
LONGEST = ("e2e", "workstation")
"""Folders whose tests start Hubs of their own: where several run at once, these begin."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the longest where several run at once."""
    deselect_others(config, items)
    items.sort(key=lambda item: item.path.relative_to(TESTS).parts[0] not in LONGEST)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests on the one cluster with real nodes: they may run beside all others."""
    # Those on our images as well: two runs must not make images at the same time.
    takes = {"cluster", "cluster_use", "images"} & set(getattr(item, "fixturenames", ()))
    if takes and item.get_closest_marker("kubernetes"):
        item.add_marker(pytest.mark.nodes)
