"""``benchpool results``: it fetches undelivered results, or shows the folder of delivered ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Benchpool = Callable[..., Any]

TRAIN = """\
import os, pathlib
pathlib.Path(os.environ["BENCHPOOL_OUTPUT_DIR"], "model.txt").write_text("trained")
"""


def test_undelivered_results_are_reported_and_fetched(
    benchpool: Benchpool, folder: Path, tmp_path: Path
) -> None:
    (folder / "train.py").write_text(TRAIN)
    (folder / "benchpool-results").write_text("in the way")
    sent = benchpool("submit", "--wait", "train.py")
    assert sent.status == 0
    (job,) = benchpool("jobs", "--all", "--json").json
    assert job["state"] == "succeeded"
    assert job["reason"]["code"] == "results-not-delivered"
    assert job["reason"]["text"].startswith("Its results could not be copied to ")
    assert job["reason"]["text"].endswith("; the pool keeps them.")
    remedy = f"Fetch them with `benchpool results {job['id'][:8]} --to FOLDER`."
    assert job["reason"]["remedy"] == remedy
    assert sent.err.splitlines()[-2:] == [job["reason"]["text"], remedy]
    shown = benchpool("show", job["id"]).out
    assert "could not be copied" in shown
    assert "benchpool results" in shown

    there = tmp_path / "there"
    assert benchpool("results", job["id"], "--to", str(there)).out == f"1 files in {there}\n"
    assert (there / "model.txt").read_text() == "trained"


def test_results_without_folder_are_rejected_with_cause(benchpool: Benchpool, folder: Path) -> None:
    (folder / "train.py").write_text(TRAIN)
    (folder / "benchpool-results").write_text("in the way")
    benchpool("submit", "--wait", "train.py")
    (job,) = benchpool("jobs", "--all", "--json").json
    refused = benchpool("results", job["id"])
    assert refused.status != 0
    assert "give another folder" in refused.err


def test_delivered_results_are_shown_with_folder(benchpool: Benchpool, folder: Path) -> None:
    (folder / "train.py").write_text(TRAIN)
    benchpool("submit", "--wait", "train.py")
    (job,) = benchpool("jobs", "--all", "--json").json
    assert job["reason"] is None
    (home,) = (folder / "benchpool-results").iterdir()
    output = benchpool("results", job["id"]).out
    assert output == f"There is nothing to fetch: the results are in {home}.\n"


def test_job_without_results_shows_none(benchpool: Benchpool, folder: Path) -> None:
    benchpool("submit", "--wait", "--", "true")
    (job,) = benchpool("jobs", "--all", "--json").json
    output = benchpool("results", job["id"]).out
    assert output.startswith("There is nothing to fetch. The results go to ")
    running = benchpool("submit", "--json", "--", "sleep", "600").json
    assert benchpool("results", running["id"]).out.startswith("There are no results yet: ")
    benchpool("cancel", running["id"])
