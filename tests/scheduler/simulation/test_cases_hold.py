"""Every scheduling case of the project holds, one test a case."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.simulation import cases, divisions, outcomes
from benchpool_scheduler.simulation.report import SUPPORTED

FOLDER = Path(__file__).parent.parent / "core" / "cases"
SHARES = sorted(FOLDER.glob("*shares.yaml"))
CASES = [
    case
    for path in sorted(FOLDER.glob("*.yaml"))
    if path not in SHARES
    for case in cases.load(path, SUPPORTED)
]
DIVISIONS = [division for path in SHARES for division in divisions.load(path)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_case_holds_and_then_nothing_changes(case: cases.Case) -> None:
    outcome = outcomes.try_case(case)
    if outcome.result == "skip":
        pytest.skip(f"needs {case.missing}")
    assert outcome.differences == ()


@pytest.mark.parametrize("division", DIVISIONS, ids=lambda division: division.name)
def test_the_division_comes_out_exactly(division: divisions.Division) -> None:
    assert divisions.check(division).differences == ()
