"""Setup for all tests."""

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

# Like the tested programs; this saves a second in each test process.
jupyter.load_jsonschema()


def pytest_collection_finish() -> None:
    """Exclude imported objects from later garbage collections, because they stay to the end."""
    gc.collect()
    gc.freeze()


TESTS = Path(__file__).parent
LONGEST = ("e2e", "workstation")
"""Folders whose tests start Hubs of their own; they run first in parallel runs."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the longest tests first, for parallel runs."""
    deselect_others(config, items)
    items.sort(key=lambda item: item.path.relative_to(TESTS).parts[0] not in LONGEST)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests on the one cluster with real nodes, which may run beside all other tests."""
    # The mark includes tests on our images: two runs must not make images at the same time.
    takes = {"cluster", "cluster_use", "images"} & set(getattr(item, "fixturenames", ()))
    if takes and item.get_closest_marker("kubernetes"):
        item.add_marker(pytest.mark.nodes)
