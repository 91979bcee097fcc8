"""The examples in the client's docstrings hold."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from benchpool_scheduler.client import patterns, snapshot


@pytest.mark.parametrize("module", [patterns, snapshot])
def test_examples_in_docstrings_run(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert tried > 0
    assert failed == 0
