"""The examples in the docstrings of the core run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from benchpool_scheduler import core

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(core.__path__, f"{core.__name__}.")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_hold(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
