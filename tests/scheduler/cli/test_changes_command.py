"""``benchpool changes``: differences between two runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Benchpool

pytestmark = pytest.mark.slow


def write(folder: Path, *cells: str) -> None:
    made = [{"cell_type": "code", "id": str(n), "source": it} for n, it in enumerate(cells)]
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made}
    (folder / "book.ipynb").write_text(json.dumps(book))


def test_notebook_runs_differ_in_changed_values(benchpool: Benchpool, folder: Path) -> None:
    (folder / "data.csv").write_text("1\n")
    write(folder, "import random\nrandom.seed(1)", "print(open('data.csv').read())")
    first = benchpool("submit", "--json", "--wait", "book.ipynb").json["id"]
    (folder / "data.csv").write_text("2\n")
    write(folder, "import random\nrandom.seed(2)", "print(open('data.csv').read())")
    again = ("submit", "--json", "--wait", "--env", "MODE=long", "book.ipynb")
    second = benchpool(*again).json["id"]
    found = benchpool("changes", "--json", first, second).json
    assert found["without_environment"] == []
    changed = {(it["area"], it["name"]): (it["before"], it["after"]) for it in found["changes"]}
    assert changed[("seed", "random.seed")] == ("1", "2")
    assert changed[("data", "data.csv")][0] != changed[("data", "data.csv")][1]
    assert changed[("option", "variable MODE")] == (None, "long")
    assert changed[("variable", "MODE")] == (None, "set")
    assert {area for area, _ in changed} == {"seed", "data", "option", "variable", "file"}
    assert "-random.seed(1)" in found["code"]
    assert "+random.seed(2)" in found["code"]
    output = benchpool("changes", first, second).out
    assert "random.seed" in output
    assert "+random.seed(2)" in output
    same = benchpool("changes", first, first).out
    assert "Options and environment are the same." in same
    assert "The code is the same." in same


def test_script_without_record_is_reported(benchpool: Benchpool, folder: Path) -> None:
    (folder / "train.py").write_text("print(1)\n")
    ids = [
        benchpool("submit", "--json", "--wait", "train.py", word).json["id"] for word in ("a", "b")
    ]
    output = benchpool("changes", *ids).out
    assert "argument 1" in output
    assert output.count("has no environment.json that can be read from here") == 2


def test_rerun_has_equal_code_and_options_but_own_results(
    benchpool: Benchpool, folder: Path
) -> None:
    (folder / "data.csv").write_text("1\n")
    write(folder, "print(open('data.csv').read())")
    sent = ("submit", "--json", "--wait", "--env", "MODE=long", "book.ipynb")
    first = benchpool(*sent).json["id"]
    (folder / "data.csv").write_text("2\n")
    write(folder, "print('other')")
    second = benchpool("again", "--json", "--key", "once more", first).json["id"]
    assert benchpool("again", "--json", "--key", "once more", first).json["id"] == second
    assert second != first
    benchpool("logs", "-f", second)
    assert [it["state"] for it in benchpool("jobs", "--json").json] == ["succeeded"] * 2
    found = benchpool("changes", "--json", first, second).json
    assert found["changes"] == []
    assert found["code"] == []
    assert found["without_environment"] == []
    assert "There is no job with the id '00000000'" in benchpool("again", "00000000").err
