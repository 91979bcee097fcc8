"""Each case on the pages holds, is shown with its picture, and is drawn from its outcome."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchpool_scheduler.simulation import cases, divisions, run
from benchpool_scheduler.simulation.outcomes import try_case
from benchpool_scheduler.simulation.report import SUPPORTED

DOCS = Path(__file__).resolve().parents[2] / "docs"
SHARES = DOCS / "cases" / "shares" / "surplus.yaml"
FILES = sorted((DOCS / "cases").glob("*.yaml"))
SCHEMES = {"on-kubernetes.svg"}
"""Diagrams of how components interact, which are not drawn from a case."""
PAGES = "".join(path.read_text() for path in (DOCS / "explanation").glob("*.md"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_documented_case_holds(path: Path) -> None:
    for case in cases.load(path, SUPPORTED):
        outcome = try_case(case)
        assert (outcome.result, outcome.differences) == ("ok", ())


def test_documented_divisions_hold() -> None:
    assert [divisions.check(one).result for one in divisions.load(SHARES)] == ["ok"] * 4


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_case_matches_file_name_and_is_shown_with_picture(path: Path) -> None:
    (case,) = cases.load(path, SUPPORTED)
    assert case.name == path.stem
    assert f"cases/{path.name}" in PAGES
    assert f"pictures/{path.stem}.svg" in PAGES


def test_every_picture_comes_from_case_or_scheme() -> None:
    drawn = SCHEMES | {f"{path.stem}.svg" for path in FILES}
    drawn |= {f"share-{one.name}.svg" for one in divisions.load(SHARES)}
    assert set(re.findall(r"pictures/([\w-]+\.svg)", PAGES)) == drawn
    assert {path.name for path in (DOCS / "pictures").glob("*.svg")} == drawn


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_picture_shows_gpus_twice_and_describes_outcome(path: Path) -> None:
    (case,) = cases.load(path, SUPPORTED)
    assert case.snapshot is not None
    root = ElementTree.parse(DOCS / "pictures" / f"{path.stem}.svg").getroot()  # noqa: S314
    svg = "{http://www.w3.org/2000/svg}"
    squares = [one for one in root.iter(f"{svg}rect") if one.get("width") == "26"]
    assert len(squares) == 2 * sum(len(node.gpus) for node in case.snapshot.nodes)
    assert root.findtext(f"{svg}desc")
    assert "prefers-color-scheme: dark" in (root.findtext(f"{svg}style") or "")


def test_documented_cases_run_in_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FILES) == 0
    assert capsys.readouterr().out.endswith(f"{len(FILES)} ok, 0 failed, 0 skipped\n")
