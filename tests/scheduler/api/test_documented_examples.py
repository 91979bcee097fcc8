"""The examples in the docstrings of API, client and command line run as they are printed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest

from benchpool_scheduler import api, cli, client


def modules() -> list[str]:
    return [
        f"{package.__name__}.{found.name}"
        for package in (api, client, cli)
        for found in pkgutil.iter_modules(package.__path__)
        if found.name != "__main__"
    ]


@pytest.mark.parametrize("name", modules())
def test_examples_run(name: str) -> None:
    module: ModuleType = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
