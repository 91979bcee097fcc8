"""The page of the rules lists every rule and names existing modules, tests and cases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "scheduler" / "benchpool_scheduler"
ROWS = [
    [re.findall(r"`([^`]+)`", cell) or cell.strip() for cell in line.split("|")[1:-1]]
    for line in (ROOT / "docs" / "reference" / "rules.md").read_text().splitlines()
    if re.match(r"\| R\d", line)
]


def cited(text: str) -> set[int]:
    """Return the rules that a text cites, singly or as a range."""
    return {
        number
        for first, last in re.findall(r"\bR(\d+)(?:-R(\d+))?\b", text)
        for number in range(int(first), int(last or first) + 1)
    }


def test_every_rule_has_row() -> None:
    assert [row[0] for row in ROWS] == [f"R{number}" for number in range(1, 24)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_named_module_cites_rule(row: list[str | list[str]]) -> None:
    rule, _, modules, *_ = row
    assert modules
    missing = [m for m in modules if int(rule[1:]) not in cited((PACKAGE / m).read_text())]  # type: ignore[arg-type]
    assert missing == []


def test_every_named_test_and_case_exists() -> None:
    tests = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    cases = {
        str(case["case"])
        for path in (ROOT / "tests" / "scheduler" / "core" / "cases").glob("*.yaml")
        for case in yaml.safe_load_all(path.read_text())
        if isinstance(case, dict)
    }
    for rule, _, _, named_tests, named_cases in ROWS:
        assert named_tests, f"{rule} is shown by no test"
        assert set(named_tests) <= tests, rule
        assert set(named_cases) <= cases, rule
