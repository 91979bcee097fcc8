"""Stored values of a job and the lines that load them, as its row in JupyterLab offers them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchpool.server.kept_values import listed
from benchpool.server.requests import KeptValue
from benchpool.values.keeping import write


def offered(output: Path, namespace: dict[str, Any], *names: str, returns: bool) -> list[KeptValue]:
    """Store values as a job does; return what the row of job 3fk2 offers."""
    wanted = {"names": names, "asked": False, "pickle": False, "returns": returns}
    write(namespace, wanted, output)
    return listed(output, "3fk2")[0]


def test_return_value_of_function_is_offered(tmp_path: Path) -> None:
    assert offered(tmp_path, {"_": {"w": 2.95}}, returns=True) == [
        KeptValue("result", "return value, dict", 'result = benchpool.job("3fk2").result()')
    ]


def test_last_expression_of_cells_is_not_offered(tmp_path: Path) -> None:
    found = offered(tmp_path, {"_": 3, "losses": [0.5]}, "losses", returns=False)
    assert found == [KeptValue("losses", "list", 'losses = benchpool.job("3fk2")["losses"]')]


def test_function_without_return_value_offers_none(tmp_path: Path) -> None:
    assert offered(tmp_path, {}, returns=True) == []
