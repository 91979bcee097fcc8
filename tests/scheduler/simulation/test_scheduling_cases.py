"""Every scheduling case of the project passes, one test per case."""

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
def test_case_passes_and_pool_settles(case: cases.Case) -> None:
    outcome = outcomes.try_case(case)
    if outcome.result == "skip":
        pytest.skip(f"needs {case.missing}")
    assert outcome.differences == ()


@pytest.mark.parametrize("division", DIVISIONS, ids=lambda division: division.name)
def test_division_matches_expected(division: divisions.Division) -> None:
    assert divisions.check(division).differences == ()
