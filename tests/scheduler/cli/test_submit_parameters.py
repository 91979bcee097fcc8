"""``benchpool submit n.ipynb -p lr=0.1``, with a real pool."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.scheduler.cli.conftest import Benchpool

pytestmark = pytest.mark.slow


@pytest.fixture
def book(folder: Path, environ: dict[str, str]) -> Path:
    environ["VIRTUAL_ENV"] = sys.prefix  # its Python has a kernel
    texts: list[tuple[list[str], str]] = [(["parameters"], "lr = 0.1"), ([], "print('got', lr)")]
    cells = [
        {"cell_type": "code", "outputs": [], "metadata": {"tags": tags}, "source": text}
        for tags, text in texts
    ]
    notebook = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}
    (folder / "book.ipynb").write_text(json.dumps(notebook))
    return folder / "book.ipynb"


def test_parameters_are_accepted_before_or_after_notebook(benchpool: Benchpool, book: Path) -> None:
    result = benchpool("submit", "--wait", "book.ipynb", "-p", "lr=0.5")
    assert (result.status, "got 0.5\n" in result.out) == (0, True)
    result = benchpool("submit", "--json", "-p", "lr=2", "book.ipynb")
    assert result.json["parameters"] == {"lr": 2.0}
    result = benchpool("submit", "--json", "book.ipynb")
    assert result.json["parameters"] == {"lr": 0.1}


def test_invalid_parameter_is_rejected_with_field(benchpool: Benchpool, book: Path) -> None:
    result = benchpool("submit", "--json", "book.ipynb", "-p", "lr=fast")
    assert (result.status, result.json["error"]["field"]) == (2, "parameters.lr")
    result = benchpool("submit", "book.ipynb", "-p", "l=1")
    assert (result.status, "no parameter `l`: did you mean lr?" in result.err) == (2, True)
    result = benchpool("submit", "-p", "lr=1", "--", "true")
    assert (result.status, "-p is for notebooks" in result.err) == (2, True)
