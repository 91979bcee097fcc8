"""The examples in the runtime's docstrings hold."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from benchpool_scheduler.runtime.local import gpus
from benchpool_scheduler.worker.supervisor import config, schedule, snapshot


@pytest.mark.parametrize("module", [gpus, config, schedule, snapshot])
def test_examples_in_docstrings_run(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert tried > 0
    assert failed == 0
