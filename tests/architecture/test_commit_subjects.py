"""The check of commit subjects in ``make check``."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path

import pytest

from benchpool_support import checkout

CHECK = runpy.run_path(str(checkout.ROOT / "tests" / "commit_subjects.py"))


@pytest.mark.parametrize(
    "subject",
    [
        "web: limit concurrent page renders per user",
        "tests/docs: need fewer browsers",
        "core, service: address review comments",
    ],
)
def test_plain_subject_has_no_fault(subject: str) -> None:
    assert CHECK["faults"](subject) == []


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("What lasts is told at once", 'it is not "component: imperative verb ..."'),
        ("web: limits page renders", '"limits" is not an imperative'),
        ("web: limited page renders", '"limited" is not an imperative'),
        ("web: limit pages; add a test", "it has a semicolon: commit one change"),
        ("web: " + "limit " * 12, "it has 77 characters: at most 72"),
    ],
)
def test_faulty_subject_is_reported(subject: str, fault: str) -> None:
    assert fault in CHECK["faults"](subject)


def test_sources_without_history_have_no_subjects(tmp_path: Path) -> None:
    assert CHECK["subjects"](tmp_path) == []
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    assert CHECK["subjects"](tmp_path) == []
